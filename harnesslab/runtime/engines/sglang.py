"""SGLang: chat completions, and the native `/generate` for requests without tools.

Seeds are honoured only by a server in deterministic mode, which then seeds every request that names none with the
same number; whether it does is for a probe to show, not for the flag.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.conditions.manifest import Condition
from harnesslab.core.running.ports import Answer, Exchange, Failure, FailureKind, Health, ModelRequest
from harnesslab.runtime.engines import dialect, sglang_facts, sglang_native
from harnesslab.runtime.engines.exchange import exchange_once, unsent
from harnesslab.runtime.engines.openai import every_condition, server_document, with_seed
from harnesslab.runtime.engines.options import Options
from harnesslab.runtime.engines.refusals import failure as refusal
from harnesslab.runtime.engines.stream import Completion
from harnesslab.runtime.engines.transport import Transport

TOKENIZE_S = 10.0
ABORT_S = 5.0
CUT_SHORT = frozenset({FailureKind.STOPPED, FailureKind.TIMEOUT})


@dataclass(frozen=True, slots=True)
class SGLangSettings:
    """What a registration says of an SGLang server."""

    native: bool = False
    """Whether requests without tools go to `/generate`."""
    alternatives: int = 2
    """Most probable tokens to ask for at each token; 0 for the chosen one's log-probability alone."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Parts of every body, beaten by the request's own settings."""
    seed_honoured: bool | None = None
    """What a probe found."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Read the options; raises `InvalidValue`."""
        return cls(
            native=options.text("endpoint", "chat", ("chat", "generate")) == "generate",
            alternatives=options.whole("alternatives", 2, 0, 100),
            extra=options.mapping("extra"),
            seed_honoured=options.maybe("seed_honoured"),
        )


class SGLangEngine:
    """An SGLang server; `address` is its root, with or without `/v1`."""

    def __init__(self, address: str, model: str, settings: SGLangSettings | None = None, *, key: str = "") -> None:
        self._transport = Transport(address.strip().rstrip("/").removesuffix("/v1"), key=key)
        self._model = model
        self._settings = settings or SGLangSettings()

    def ask(self, request: ModelRequest, *, timeout: float, on_text: Callable[[str], bool] | None = None) -> Exchange:
        """Make one attempt; one that was cut short is also aborted by name, since SGLang may not see the hang-up."""
        name = uuid.uuid4().hex
        body = self._body(request, name)
        if self._settings.native and request.tools is None:
            exchange = self._generate(request, body, timeout=timeout, on_text=on_text)
        else:
            exchange = self._chat(body, timeout=timeout, on_text=on_text)
        if exchange.failure is not None and exchange.failure.kind in CUT_SHORT:
            self._abort(name)
        return with_seed(exchange, body, self._settings.seed_honoured)

    def conditions(self) -> Mapping[str, Condition]:
        """Ask for its arguments as it resolved them; raises `EngineDown`."""
        server, model = (
            server_document(self._transport, "/server_info"),
            server_document(self._transport, "/model_info"),
        )
        stated = sglang_facts.conditions(server, model, self._model)
        return every_condition(stated, "SGLang reports nothing of it")

    def startup(self) -> Mapping[str, JSON]:
        """Return what differs between two starts of one configuration, its own random seed first; raises
        `EngineDown`."""
        server = server_document(self._transport, "/server_info")
        return {key: server.get(key) for key in ("random_seed", "startup_time", "weight_version")}

    def health(self) -> Health:
        """Ask `/health`, which runs no token."""
        reply = self._transport.send("GET", "/health", timeout=10)
        if reply.status == 200 and reply.failure is None:
            return Health(up=True, sentence=f"{self._transport.address} answers")
        return Health(up=False, sentence=(reply.failure or refusal(reply)).sentence)

    def close(self) -> None:
        """Nothing is held between requests."""

    def _body(self, request: ModelRequest, name: str) -> dict[str, JSON]:
        wishes: dict[str, JSON] = {"rid": name, "logprobs": True, **self._settings.extra}
        if self._settings.alternatives:
            wishes.setdefault("top_logprobs", self._settings.alternatives)
        if request.stream:  # which refuses return_token_ids
            wishes |= {"return_input_ids_in_sglext": True, "return_output_ids_in_sglext": True}
        else:
            wishes["return_token_ids"] = True
        body = dialect.body_of(request, self._model, wishes)
        if "grammar" in body:
            body["ebnf"] = body.pop("grammar")
        return body

    def _chat(self, body: Mapping[str, JSON], *, timeout: float, on_text: Callable[[str], bool] | None) -> Exchange:
        return exchange_once(
            self._transport,
            "/v1/chat/completions",
            body,
            model=self._model,
            timeout=timeout,
            on_text=on_text,
            pieces=Completion(),
            read=_with_stream_ids,
        )

    def _generate(
        self, request: ModelRequest, body: dict[str, JSON], *, timeout: float, on_text: Callable[[str], bool] | None
    ) -> Exchange:
        """Let the server render the messages to token ids, then generate from exactly those."""
        ids = self._prompt_ids(request)
        if isinstance(ids, Failure):
            return unsent(body, self._model, ids)
        native = sglang_native.body_of(body, ids, alternatives=self._settings.alternatives)
        if isinstance(native, Failure):
            return unsent(body, self._model, native)
        exchange = exchange_once(
            self._transport,
            "/generate",
            native,
            model=self._model,
            timeout=timeout,
            on_text=on_text,
            pieces=sglang_native.Generation(),
            read=sglang_native.answer_of,
        )
        answer = exchange.answer and dataclasses.replace(exchange.answer, prompt_token_ids=ids)
        # by their OpenAI names, so that one request has the same settings whichever endpoint it went to
        return dataclasses.replace(exchange, settings=dialect.settings_of(body), answer=answer)

    def _prompt_ids(self, request: ModelRequest) -> tuple[int, ...] | Failure:
        body = dialect.encoded({"model": self._model, "messages": list(request.messages)})
        reply = self._transport.send("POST", "/v1/tokenize", body, timeout=TOKENIZE_S)
        if reply.failure is not None or reply.status != 200:
            return reply.failure or refusal(reply)
        try:
            document = parse(reply.body)
        except ValueError:
            document = None
        ids = dialect.token_ids(document.get("tokens")) if isinstance(document, Mapping) else None
        return ids or Failure(FailureKind.MALFORMED, "/v1/tokenize gave no token ids")

    def _abort(self, name: str) -> None:
        """Ask for the end of a request; whether that is heard changes nothing here."""
        self._transport.send("POST", "/abort_request", dialect.encoded({"rid": name}), timeout=ABORT_S)


def _with_stream_ids(completion: JSON) -> Answer | Failure:
    """Read a completion; in a stream SGLang gives the ids beside the choices."""
    answer = dialect.answer_of(completion)
    beside = completion.get("sglext") if isinstance(completion, Mapping) else None
    if not isinstance(answer, Answer) or not isinstance(beside, Mapping):
        return answer
    outputs = beside.get("output_ids")
    return dataclasses.replace(
        answer,
        prompt_token_ids=answer.prompt_token_ids or dialect.token_ids(beside.get("input_ids")),
        token_ids=answer.token_ids or dialect.token_ids(outputs[0] if isinstance(outputs, list) and outputs else None),
    )
