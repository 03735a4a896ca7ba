"""Any server that speaks OpenAI's chat completions: vLLM, llama.cpp, Ollama, hosted ones.

What a server does not disclose of itself is an unknown condition with its reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from harnesslab.core.canonical import JSON, bytes_digest, parse
from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown
from harnesslab.core.conditions.schemas import MANIFESTS
from harnesslab.core.running.ports import EngineDown, Exchange, Health, ModelRequest
from harnesslab.runtime.engines import dialect, refusals
from harnesslab.runtime.engines.exchange import exchange_once
from harnesslab.runtime.engines.options import Options
from harnesslab.runtime.engines.stream import Completion
from harnesslab.runtime.engines.transport import Reply, Transport

FACTS_S = 10.0
"""Seconds that a question about facts may take."""
SECTIONS = ("model", "engine", "hardware")
_OWNERS = {"vllm": "vLLM", "llamacpp": "llama.cpp", "sglang": "SGLang", "library": "Ollama"}


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """What a registration says of an OpenAI-compatible server."""

    provider: str = ""
    logprobs: int | None = None
    """Alternatives to ask for with the log-probabilities; None asks for neither."""
    return_token_ids: bool = False
    """Whether to ask for token ids, which vLLM gives; others may refuse the word."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Parts of every body, beaten by the request's own settings."""
    seed_honoured: bool | None = None
    """What a probe found."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Read the options; raises `InvalidValue`."""
        wanted = options.whole("logprobs", -1, 0, 20)
        return cls(
            provider=options.text("provider"),
            logprobs=None if wanted < 0 else wanted,
            return_token_ids=options.flag("return_token_ids", default=False),
            extra=options.mapping("extra"),
            seed_honoured=options.maybe("seed_honoured"),
        )


class OpenAIEngine:
    """An OpenAI-compatible server; `address` ends where `/chat/completions` begins, usually in `/v1`."""

    def __init__(self, address: str, model: str, settings: OpenAISettings | None = None, *, key: str = "") -> None:
        self._transport = Transport(address, key=key)
        self._model = model
        self._settings = settings or OpenAISettings()

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Make one attempt."""
        body = dialect.body_of(request, self._model, self._wishes())
        exchange = exchange_once(
            self._transport,
            "/chat/completions",
            body,
            model=self._model,
            timeout=timeout,
            on_text=on_text,
            pieces=Completion(),
            read=dialect.answer_of,
        )
        return with_seed(exchange, body, self._settings.seed_honoured)

    def conditions(self) -> Mapping[str, Condition]:
        """Ask what the server discloses; raises `EngineDown`."""
        listed = server_document(self._transport, "/models")
        models = _objects(listed.get("data"))
        owner = str(next((item for item in models if item.get("id") == self._model), {}).get("owned_by", ""))
        owner = owner or next((str(item.get("owned_by", "")) for item in models), "")
        known: dict[str, Condition] = {"model.name": Known(self._model, Provenance.CONFIGURED)}
        if self._settings.provider:
            known["model.provider"] = Known(self._settings.provider, Provenance.CONFIGURED)
        if owner in _OWNERS:
            known["engine.name"] = Known(_OWNERS[owner], Provenance.SERVER)
            known |= self._disclosed(_OWNERS[owner])
        return every_condition(known, "the server does not disclose it")

    def startup(self) -> Mapping[str, JSON]:
        """Return nothing: no server of this kind tells one start from another."""
        return {}

    def health(self) -> Health:
        """Say whether it lists its models."""
        try:
            server_document(self._transport, "/models")
        except EngineDown as error:
            return Health(up=False, sentence=error.sentence)
        return Health(up=True, sentence=f"{self._transport.address} answers")

    def close(self) -> None:
        """Nothing is held between requests."""

    def _wishes(self) -> dict[str, JSON]:
        wishes = dict(self._settings.extra)
        if self._settings.logprobs is not None:
            wishes["logprobs"] = True
            if self._settings.logprobs:
                wishes["top_logprobs"] = self._settings.logprobs
        if self._settings.return_token_ids:
            wishes["return_token_ids"] = True
        return wishes

    def _disclosed(self, engine: str) -> dict[str, Condition]:
        """Ask what this kind of server tells beside the dialect; one that doesn't answer tells nothing."""
        root = Transport(self._transport.address.removesuffix("/v1"))
        match engine:
            case "vLLM" | "Ollama":
                stated = _answered(root, "/version" if engine == "vLLM" else "/api/version")
                version = stated.get("version")
                return {"engine.version": Known(version, Provenance.SERVER)} if isinstance(version, str) else {}
            case "llama.cpp":
                return llama_facts(_answered(root, "/props"))
        return {}


def llama_facts(props: Mapping[str, JSON]) -> dict[str, Condition]:
    """Return what llama.cpp's `/props` states."""
    facts: dict[str, JSON] = {
        "engine.version": props.get("build_info"),
        "engine.max_running_requests": props.get("total_slots"),
        "engine.storage_precision": props.get("model_ftype"),
        "engine.quantisation": props.get("model_ftype"),
        "engine.speculative": _speculative(props),
    }
    template = props.get("chat_template")
    if isinstance(template, str):
        facts["model.chat_template"] = bytes_digest(template.encode("utf-8", "surrogatepass"))
    return {name: Known(value, Provenance.SERVER) for name, value in facts.items() if value is not None}


def _speculative(props: Mapping[str, JSON]) -> JSON:
    settings = props.get("default_generation_settings")
    params = settings.get("params") if isinstance(settings, Mapping) else None
    return params.get("speculative.types") if isinstance(params, Mapping) else None


def with_seed(exchange: Exchange, body: Mapping[str, JSON], honoured: bool | None) -> Exchange:
    """Note whether the seed was honoured, where one was sent and a probe says so."""
    sent = body.get("seed") is not None
    if exchange.answer is None or not sent or honoured is None:
        return exchange
    return dataclasses.replace(exchange, answer=dataclasses.replace(exchange.answer, seed_honoured=honoured))


def every_condition(known: Mapping[str, Condition], reason: str) -> dict[str, Condition]:
    """Return every condition an engine could state, those that it does not as unknown."""
    names = [item.name for item in MANIFESTS.current.fields if item.section in SECTIONS]
    return {name: known.get(name, Unknown(reason)) for name in names}


def server_document(transport: Transport, path: str) -> Mapping[str, JSON]:
    """Return what a server answers to a question about itself; raises `EngineDown`."""
    reply = transport.send("GET", path, timeout=FACTS_S)
    document = _document(reply)
    if document is None:
        failure = reply.failure or refusals.failure(reply)
        raise EngineDown(failure.sentence, where=f"{transport.address}{path}")
    return document


def _answered(transport: Transport, path: str) -> Mapping[str, JSON]:
    return _document(transport.send("GET", path, timeout=FACTS_S)) or {}


def _document(reply: Reply) -> Mapping[str, JSON] | None:
    if reply.failure is not None or reply.status != 200:
        return None
    try:
        document = parse(reply.body)
    except ValueError:
        return None
    return document if isinstance(document, Mapping) else None


def _objects(values: JSON) -> list[Mapping[str, JSON]]:
    return [item for item in values if isinstance(item, Mapping)] if isinstance(values, list) else []
