"""The engine that comes with HarnessLab: llama.cpp in a process of the engine host, asked over loopback."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import Answer, EngineDown, Exchange, Failure, FailureKind, Health, ModelRequest
from harnesslab.runtime.engines import dialect, processor
from harnesslab.runtime.engines.configuration import Configuration
from harnesslab.runtime.engines.exchange import exchange_once, unsent
from harnesslab.runtime.engines.hosting import Host
from harnesslab.runtime.engines.openai import every_condition, llama_facts, server_document, with_seed
from harnesslab.runtime.engines.options import Options
from harnesslab.runtime.engines.stream import Completion
from harnesslab.runtime.engines.transport import Transport

SEEDS = 2**32 - 1
"""llama.cpp takes 32 bits, and the last value for a random seed: a larger seed is sent as its remainder."""
RENDER_S = 10.0
_RENDERED = ("messages", "tools", "tool_choice", "response_format", "chat_template_kwargs", "reasoning_effort")
"""Parts of a body that the chat template may see."""
_LATE = FailureKind.TIMEOUT
_LOST = frozenset({FailureKind.UNREACHABLE, FailureKind.SERVER_ERROR, FailureKind.MALFORMED})


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """What a registration says of an embedded engine."""

    configuration: Configuration
    alternatives: int = 2
    """Most probable tokens to ask for at each token."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Read the options; raises `InvalidValue`."""
        return cls(Configuration.of(options), options.whole("alternatives", 2, 1, 100))


class EmbeddedEngine:
    """llama.cpp under the engine host of a home folder."""

    def __init__(self, home: Path, model: str, settings: EmbeddedSettings) -> None:
        self._host = Host(home)
        self._model = model
        self._configuration = settings.configuration
        self._alternatives = settings.alternatives

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Make one attempt, starting the server first where it does not run."""
        body, began = self._body(request), time.monotonic()
        try:
            server = self._host.ensure(self._configuration, timeout)
            transport = _transport(server)
        except EngineDown as error:
            late = time.monotonic() - began >= timeout
            return unsent(body, self._model, Failure(_LATE if late else FailureKind.UNREACHABLE, error.sentence))
        waited = time.monotonic() - began
        exchange = exchange_once(
            transport,
            "/v1/chat/completions",
            body,
            model=self._model,
            timeout=max(0.0, timeout - waited),
            on_text=on_text,
            pieces=Completion(),
            read=dialect.answer_of,
        )
        exchange = dataclasses.replace(exchange, waited=waited)
        if exchange.failure is not None and exchange.failure.kind in _LOST:
            return dataclasses.replace(exchange, failure=self._explained(exchange.failure, server))
        if exchange.answer is not None:
            exchange = dataclasses.replace(exchange, answer=_with_prompt(transport, body, exchange.answer))
        return with_seed(exchange, body, honoured=True)

    def conditions(self) -> Mapping[str, Condition]:
        """State how the server was started and what it says of itself; raises `EngineDown`."""
        server = self._host.ensure(self._configuration)
        props = server_document(_transport(server), "/props")
        return every_condition(
            {**_configured(self._configuration, self._model), **llama_facts(props), **_told(server), **_machine()},
            "llama.cpp states nothing of it",
        )

    def startup(self) -> Mapping[str, JSON]:
        """Return what differs between two starts of one configuration; raises `EngineDown`."""
        return {"pid": self._host.ensure(self._configuration).get("pid")}

    def restart(self) -> None:
        """End the server and start it again; raises `EngineDown`."""
        self._host.restart(self._configuration)

    def health(self) -> Health:
        """Have the server, and ask it."""
        try:
            server = self._host.ensure(self._configuration)
            server_document(_transport(server), "/health")
        except EngineDown as error:
            return Health(up=False, sentence=error.sentence)
        return Health(up=True, sentence=f"llama.cpp answers (process {server.get('pid')})")

    def close(self) -> None:
        """Nothing is held between requests; the host ends an unused server by itself."""

    def _body(self, request: ModelRequest) -> dict[str, JSON]:
        wishes: dict[str, JSON] = {"cache_prompt": self._configuration.prefix_cache}
        if not (request.stream and request.tools):  # for which llama.cpp refuses log-probabilities
            wishes |= {"logprobs": True, "top_logprobs": self._alternatives}
        body = dialect.body_of(request, self._model, wishes)
        seed = body.get("seed")
        if isinstance(seed, int) and not isinstance(seed, bool):
            body["seed"] = seed % SEEDS
        return body

    def _explained(self, failure: Failure, server: Mapping[str, JSON]) -> Failure:
        """Say how the server ended, where that is why no answer came."""
        pid = server.get("pid")
        try:
            ending = self._host.ending(pid) if isinstance(pid, int) else None
        except EngineDown as error:
            return Failure(FailureKind.UNREACHABLE, f"{failure.sentence}; {error.sentence}", failure.facts)
        if ending is None:
            return failure
        sentence = f"{ending.get('sentence')}, while it worked at this request"
        return Failure(FailureKind.UNREACHABLE, sentence, {**failure.facts, **ending})


def _transport(server: Mapping[str, JSON]) -> Transport:
    try:
        return Transport(str(server.get("address")), key=str(server.get("key", "")))
    except InvalidValue as error:
        raise EngineDown(error.sentence) from error


def _with_prompt(transport: Transport, body: Mapping[str, JSON], answer: Answer) -> Answer:
    """Add the rendered prompt and its token ids, which llama.cpp gives apart; what does not fit the count of the
    answer is not the prompt that was used."""
    rendered = _post(transport, "/apply-template", {key: body[key] for key in _RENDERED if key in body}).get("prompt")
    if not isinstance(rendered, str):
        return answer
    cut: dict[str, JSON] = {"content": rendered, "add_special": True, "parse_special": True}
    ids = dialect.token_ids(_post(transport, "/tokenize", cut).get("tokens"))
    if ids is None or answer.usage is None or answer.usage.input != len(ids):
        return answer
    return dataclasses.replace(answer, prompt=rendered, prompt_token_ids=ids)


def _post(transport: Transport, path: str, body: Mapping[str, JSON]) -> Mapping[str, JSON]:
    reply = transport.send("POST", path, dialect.encoded(body), timeout=RENDER_S)
    try:
        document = parse(reply.body) if reply.status == 200 and reply.failure is None else None
    except ValueError:
        document = None
    return document if isinstance(document, Mapping) else {}


def _configured(configuration: Configuration, model: str) -> dict[str, Condition]:
    """What the host starts a server with, which the server does not repeat."""
    facts: dict[str, JSON] = {
        "model.name": model,
        "model.provider": "embedded",
        "model.adapters": [],
        "engine.name": "llama.cpp",
        "engine.attention_backend": f"flash attention {'on' if configuration.flash_attention else 'off'}",
        "engine.deterministic": False,
        "engine.state_precision": "none",
        "engine.parallelism": {
            "threads": configuration.threads,
            "n_batch": configuration.n_batch,
            "n_ubatch": configuration.n_ubatch,
        },
        "engine.max_running_requests": configuration.slots,
        "engine.prefix_cache": configuration.prefix_cache,
        "engine.compile": "none",
        "engine.launch_arguments": configuration.settings(),
    }
    known: dict[str, Condition] = {name: Known(value, Provenance.CONFIGURED) for name, value in facts.items()}
    known["model.revision"] = Unknown("a GGUF file names no revision; its digest names the weights")
    known["engine.compute_precision"] = Unknown("llama.cpp chooses it for each operation and states none")
    return known


def _told(server: Mapping[str, JSON]) -> dict[str, Condition]:
    """What the host and the server said when it started."""
    known: dict[str, Condition] = {
        "engine.version": Known(f"xllamacpp {server.get('version')}", Provenance.SERVER),
        "engine.kernels": Known(server.get("system"), Provenance.SERVER),
        "engine.kv_cache_precision": Known(server.get("kv_cache"), Provenance.SERVER),
        "model.weights_digest": Known(server.get("weights"), Provenance.PROBED),
    }
    if server.get("tokenizer"):
        known["model.tokenizer"] = Known(server.get("tokenizer"), Provenance.PROBED)
    return known


def _machine() -> dict[str, Condition]:
    return {
        "hardware.accelerators": Known([], Provenance.CONFIGURED),
        "hardware.driver": Known("none", Provenance.CONFIGURED),
        "hardware.cpu": Known(processor.model_name(), Provenance.PROBED),
        "hardware.instruction_set": Known(processor.instruction_set(), Provenance.PROBED),
    }
