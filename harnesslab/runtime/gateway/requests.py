"""What every dialect comes down to: a request in the chat dialect, an answer to give back, or a problem to state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.ports import Failure, FailureKind
from harnesslab.core.trace.events import ModelCall


class RequestRefused(HarnessLabError):
    """A request that can't be passed on as it was meant."""


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request of an agent, in the chat dialect."""

    dialect: str
    model: str
    """The model's name as the agent wrote it."""
    messages: Sequence[JSON]
    tools: JSON = None
    settings: Mapping[str, JSON] = field(default_factory=dict)
    stream: bool = False
    count_tokens: bool = True
    """Whether a stream ends with its usage, where the dialect lets the agent choose."""
    kept_back: Mapping[str, JSON] = field(default_factory=dict)
    """What was stated and can't change an answer, such as metadata: recorded, not passed on."""
    body: bytes = b""
    """The body as it was received."""
    retry: int = 0
    """How often the agent says it has sent this request before."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no answer, for a dialect to say."""

    status: int
    code: str
    sentence: str
    facts: Mapping[str, JSON] = field(default_factory=dict)
    retry_after: float | None = None
    retried: bool = False
    """Whether asking again may help."""


class ModelBoundary(Protocol):
    """Who decides what becomes of requests; called from the threads of connections."""

    def ask(self, request: AgentRequest, gone: Callable[[], bool]) -> ModelCall | Problem:
        """Wait for the answer to a request; `gone` says whether its client has closed the connection."""

    def refused(self, sentence: str) -> None:
        """Note a request that was not passed on."""

    def models(self) -> Sequence[str]:
        """List the models there are."""


class Dialect(Protocol):
    """How one API writes requests, answers and problems."""

    name: str

    def read(self, body: Mapping[str, JSON]) -> AgentRequest:
        """Read a request; raises `RequestRefused`."""

    def answer(self, request: AgentRequest, call: ModelCall) -> Mapping[str, JSON]:
        """Write an answer; raises `RequestRefused` where the dialect has no place for it."""

    def stream(self, request: AgentRequest, call: ModelCall) -> Iterator[bytes]:
        """Write an answer as server-sent events; raises `RequestRefused` before the first."""

    def problem(self, problem: Problem) -> tuple[int, Mapping[str, JSON]]:
        """Return the status and body of a problem."""


_STATUS = {
    FailureKind.UNREACHABLE: (502, "engine_unreachable"),
    FailureKind.OVERLOADED: (503, "overloaded"),
    FailureKind.CONTEXT_EXCEEDED: (400, "context_length_exceeded"),
    FailureKind.TOOL_CALL_REJECTED: (400, "tool_call_rejected"),
    FailureKind.MALFORMED: (502, "malformed_answer"),
    FailureKind.TIMEOUT: (504, "timeout"),
    FailureKind.STOPPED: (503, "stopped"),
    FailureKind.HUNG_UP: (499, "client_hung_up"),
    FailureKind.REFUSED: (400, "request_refused"),
    FailureKind.SERVER_ERROR: (500, "server_error"),
}
_COUNTS = ("prompt_tokens", "context_limit", "requested_tokens", "max_tokens")


def problem_of(failure: Failure) -> Problem:
    """Return an engine's failure as a problem; counts that the engine stated are in its sentence too."""
    status, code = _STATUS[failure.kind]
    counts = [f"{name} {failure.facts[name]}" for name in _COUNTS if failure.facts.get(name) is not None]
    known = failure.kind is FailureKind.CONTEXT_EXCEEDED and counts
    sentence = f"{failure.sentence} ({', '.join(counts)})" if known else failure.sentence
    retried = status >= 500 and failure.kind is not FailureKind.STOPPED
    return Problem(status, code, sentence, failure.facts, failure.retry_after, retried)


def bad_request(sentence: str, status: int = 400, code: str = "invalid_request") -> Problem:
    """Return the problem of a request that is not passed on."""
    return Problem(status, code, sentence)


def call_id(call: ModelCall, number: int) -> str:
    """Return the id under which an agent is told of a tool call: the model's, else one of our own."""
    return call.tool_calls[number].id or f"call_{call.step}_{call.attempt}_{number}"
