"""What the calls of each tool add up to: how many, how many failed, their time and the tokens that asked for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import ToolCall

NAMES = 100
"""Tools, mechanisms or kinds of fault that are told apart; the others are counted together."""
OTHERS = "(others)"
LONGEST_NAME = 120
LARGEST = 2**53 - 1


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The calls of one tool."""

    calls: int = 0
    failed: int = 0
    """Calls that ended with an error, a timeout or an exit code other than 0."""
    seconds: float = 0.0
    timed: int = 0
    """Calls whose time is stated: what `seconds` is of."""
    output_tokens: int = 0
    """Output tokens of the model calls that asked for it, shared evenly among the calls of one answer."""
    asked: int = 0
    """Calls asked for by answers whose tokens are stated and were paid: what `output_tokens` is of."""


@dataclass(slots=True)
class _Calls:
    """The calls of one tool so far."""

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    timed: int = 0
    output_tokens: int = 0
    asked: int = 0

    def whole(self) -> ToolUse:
        """Return them as they are kept."""
        tokens = min(self.output_tokens, LARGEST)
        return ToolUse(self.calls, self.failed, self.seconds, self.timed, tokens, self.asked)


class ToolTally:
    """The calls of a trace's tools so far."""

    def __init__(self) -> None:
        self._tools: dict[str, _Calls] = {}

    def ran(self, event: ToolCall) -> None:
        """Count one call."""
        tool = self._of(event.name)
        tool.calls += 1
        tool.failed += event.error is not None or event.timed_out or event.exit_code not in (None, 0)
        seconds = time_of(event.latency)
        if seconds is not None:
            tool.timed += 1
            tool.seconds += seconds

    def pay(self, names: Sequence[str], output: int | None) -> None:
        """Share the output tokens of one answer among the calls that it asked for."""
        if output is None or output < 0:
            return
        each, rest = divmod(output, len(names))
        for place, name in enumerate(names):
            tool = self._of(name)
            tool.output_tokens += each + (place < rest)
            tool.asked += 1

    def _of(self, name: str) -> _Calls:
        return self._tools.setdefault(named(self._tools, name), _Calls())

    def whole(self) -> dict[str, ToolUse]:
        """Return the calls by tool."""
        return {name: tool.whole() for name, tool in self._tools.items()}


def time_of(value: JSON) -> float | None:
    """Return a stated time in seconds; None for what can't be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < LARGEST and math.isfinite(value) else None


def named(known: Mapping[str, object], name: str) -> str:
    """Return the name under which something is counted."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short if short in known or len(known) < NAMES else OTHERS
