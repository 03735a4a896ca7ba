"""What a trace is made of: one tagged union with a member for every boundary where the next state can change.

Messages and tool schemas are not held by events but by the trace's payload table (`trace.py`); events name
them by position, so that a transcript that is sent again and again is kept once. Fields that the source does
not state keep their default, which means *not recorded*, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias, get_args

import msgspec

from harnesslab.core.canonical import JSON, MAX_DEPTH, canonical_bytes, with_numbers
from harnesslab.core.errors import NotCanonical


class Fidelity(StrEnum):
    """How the input of a model call is known."""

    RECORDED = "recorded"
    """The request as it was sent."""
    REBUILT = "rebuilt"
    """Put together by an importer from the conversation; what the harness sent may have differed."""


class Window(msgspec.Struct, frozen=True, array_like=True):
    """The messages of one call, as a change of the agent's previous call: keep the first `keep`, then add."""

    keep: int = 0
    add: tuple[int, ...] = ()
    """Positions in the trace's payload table."""


class ToolRequest(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool call as the model emitted it."""

    name: str
    arguments: JSON = None
    """The parsed arguments; None where they could not be parsed."""
    raw: str | None = None
    """The argument text as emitted, kept also when it is not valid JSON."""
    id: str = ""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Tokens of one call in one convention: input includes what was cached, output includes reasoning."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class TraceEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind"
):
    """What every event has; a key that no field has would be no part of its seal, so none is read."""

    step: int = 0
    """The agent turn, from 0."""
    agent: str = ""
    """Path of the sub-agent it happened in, such as `research/2`; empty for the main agent."""
    at: float | None = None
    """Seconds since the rollout began at which the event began."""
    latency: float | None = None
    """Seconds it took."""
    origin: str = ""
    """Where in the source it was read: a line, member or path."""
    extra: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Recorded facts without a field of their own."""


class RolloutStarted(TraceEvent, frozen=True, tag="rollout_started"):
    """The opening: which manifest, which initial state."""

    manifest: str = ""
    """Digest of the manifest."""
    state: str | None = None
    """Digest of the initial workspace."""


class ModelCall(TraceEvent, frozen=True, tag="model_call"):
    """One attempt at the model boundary: what was asked, what came back."""

    model: str = ""
    input: Window = Window()
    fidelity: Fidelity = Fidelity.REBUILT
    tools: int | None = None
    """Position of the tool schemas in the payload table."""
    settings: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Sampling and stop rules as sent, the seed included."""
    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: tuple[ToolRequest, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    attempt: int = 0
    """0 for the first attempt of a step; a retry of any kind counts on."""
    rejected: str | None = None
    """Why the harness did not accept this completion."""
    error: str | None = None
    seed_honoured: bool | None = None
    served_from_cache: bool | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    """The provider's revision or system fingerprint."""
    prompt: str | None = None
    """The rendered prompt."""
    prompt_token_ids: tuple[int, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    """Natural logarithm of the probability of each completion token."""
    alternatives: tuple[JSON, ...] | None = None
    """Per token, the most probable tokens with their log-probabilities, as the engine gave them."""
    raw_request: str | None = None
    """The request body as sent, where the source keeps it apart from its messages."""
    raw_response: JSON = None
    """The response body as received: text, or its JSON where the source kept only that."""


class ToolCall(TraceEvent, frozen=True, tag="tool_call"):
    """One tool execution: arguments, the result as produced, and the result as the model saw it."""

    name: str
    arguments: JSON = None
    raw: str | None = None
    """The argument text as emitted."""
    id: str = ""
    result: JSON = None
    has_result: bool = True
    """False where the source holds no result for the call."""
    seen: JSON = None
    """What the model was shown, where a rule of the harness changed the result; None where it was not changed."""
    exit_code: int | None = None
    error: str | None = None
    timed_out: bool = False
    retries: int | None = None
    emitted: int | None = None
    """Position among the calls of its step, as emitted."""
    completed: int | None = None
    """Position among the calls of its step, in order of completion."""


class UserTurn(TraceEvent, frozen=True, tag="user_turn"):
    """What a real or simulated user said."""

    content: JSON = None
    simulated: bool | None = None


class SubagentCall(TraceEvent, frozen=True, tag="subagent_call"):
    """A hand-over to another agent; its own events carry `child` as their `agent`."""

    name: str
    child: str = ""
    input: JSON = None
    output: JSON = None
    error: str | None = None


class Retrieval(TraceEvent, frozen=True, tag="retrieval"):
    """A query to an index and the documents that came back."""

    source: str = ""
    query: JSON = None
    documents: JSON = None
    snapshot: str | None = None
    """Revision or digest of the index."""


class MemoryAccess(TraceEvent, frozen=True, tag="memory_access"):
    """A read or write of what the agent keeps between steps or rollouts."""

    operation: str
    key: str = ""
    value: JSON = None


class ClockRead(TraceEvent, frozen=True, tag="clock_read"):
    """The harness read the clock."""

    value: JSON = None


class NetworkExchange(TraceEvent, frozen=True, tag="network_exchange"):
    """A request to a service that is neither a model nor a declared tool."""

    target: str
    request: JSON = None
    response: JSON = None
    error: str | None = None


class HarnessAction(TraceEvent, frozen=True, tag="harness_action"):
    """Something the harness did by itself: a reminder, guard, repair, retry, trim or clip."""

    name: str
    detail: JSON = None
    mechanism: str | None = None
    """The named rule of the harness that fired."""


class TestResult(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The verdict of one test of the verifier."""

    __test__ = False  # not a pytest class

    name: str
    passed: bool | None = None
    detail: str = ""


class Verification(TraceEvent, frozen=True, tag="verification"):
    """What the evaluator said; `reward` None means that none was given, which is not zero."""

    passed: bool | None = None
    reward: float | None = None
    scores: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    tests: tuple[TestResult, ...] = ()
    output: str | None = None
    error: str | None = None


class RolloutEnded(TraceEvent, frozen=True, tag="rollout_ended"):
    """The closing event: how it ended, and how many events there are, itself included."""

    outcome: str
    count: int = 0
    state: str | None = None
    """Digest of the final workspace."""
    diff: str | None = None
    """The workspace's change as a unified diff."""
    error: str | None = None


AnyEvent: TypeAlias = (
    RolloutStarted
    | ModelCall
    | ToolCall
    | UserTurn
    | SubagentCall
    | Retrieval
    | MemoryAccess
    | ClockRead
    | NetworkExchange
    | HarnessAction
    | Verification
    | RolloutEnded
)

KINDS: dict[str, type[AnyEvent]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}


def boundary(event: AnyEvent) -> str:
    """Name the boundary an event was recorded at."""
    match event:
        case ModelCall():
            return "model"
        case ToolCall():
            return f"tool:{event.name}"
        case UserTurn():
            return "user"
        case SubagentCall():
            return "subagent"
        case Retrieval():
            return "retrieval"
        case MemoryAccess():
            return "memory"
        case ClockRead():
            return "clock"
        case NetworkExchange():
            return "network"
        case RolloutStarted() | HarnessAction() | Verification() | RolloutEnded():
            return "harness"


def to_json(event: AnyEvent) -> dict[str, JSON]:
    """Return an event as JSON; defaults are left out. Raises `NotCanonical` for one nested without end."""
    try:
        return msgspec.to_builtins(event, str_keys=True)  # type: ignore[no-any-return]
    except RecursionError as error:
        raise NotCanonical(f"an event nested deeper than {MAX_DEPTH} levels") from error


def from_json(value: JSON) -> AnyEvent:
    """Read an event; raises `msgspec.ValidationError`, whose text names the place, for anything else."""
    try:
        return msgspec.convert(value, type=AnyEvent)  # type: ignore[no-any-return]
    except UnicodeEncodeError as error:  # of the sentence that would name an unknown kind
        raise msgspec.ValidationError(f"no such kind of event: {error.object!a}") from None
    except msgspec.ValidationError:
        # a typed field may hold NaN, infinity or a big integer, stored as {"$number": …}: only then are tags numbers
        if b'"$number"' not in canonical_bytes(value):
            raise
        return msgspec.convert(with_numbers(value), type=AnyEvent)  # type: ignore[no-any-return]
