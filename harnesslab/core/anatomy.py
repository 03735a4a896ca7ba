"""What a rollout's trace adds up to: calls, tokens, attempts, repairs, firings, tools and times."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The calls of one tool."""

    calls: int = 0
    failed: int = 0
    """Calls that ended with an error, a timeout or an exit code other than 0."""
    seconds: float = 0.0
    output_tokens: int = 0
    """Output tokens of the model calls that asked for it, shared evenly among the calls of one answer."""


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers that were rejected for one reason."""

    times: int = 0
    recovered: int = 0
    """How often a later attempt of the same step was accepted."""


class Anatomy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Counts over one trace; what no event states stays None, never 0."""

    steps: int = 0
    calls: int = 0
    """Model calls that an engine answered; those served from a cache or a record are in `served`."""
    served: int = 0
    input: int | None = None
    """Tokens of the calls in `calls`, cached ones included."""
    cached: int | None = None
    output: int | None = None
    """Reasoning included."""
    reasoning: int | None = None
    served_input: int | None = None
    """Tokens of the calls in `served`: shown, never billed."""
    served_output: int | None = None
    first_attempts: int = 0
    """Steps at which the model was asked for an action."""
    first_valid: int = 0
    """Those of them whose first answer was a valid action."""
    repairs: Mapping[str, Repair] = msgspec.field(default_factory=dict)
    """By kind of fault."""
    submitted: bool | None = None
    """Whether the work was handed in and judged; None where the trace can't tell."""
    firings: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """By mechanism, the steps at which it fired, in order."""
    tools: Mapping[str, ToolUse] = msgspec.field(default_factory=dict)
    waited: float = 0.0
    """Seconds that requests waited for their turn."""
    model: float = 0.0
    """Seconds of model calls, waiting left out."""
    tool: float = 0.0
    verify: float = 0.0
    tests_passed: int | None = None
    tests: int | None = None

    def to_json(self) -> JSON:
        """Return the counts as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> Anatomy:
        """Read counts that `to_json` wrote."""
        return msgspec.convert(document, type=cls)
