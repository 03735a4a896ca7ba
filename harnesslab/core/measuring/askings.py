"""What became of each request for an action: attempts, repairs, and the tools that its tokens paid for."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from harnesslab.core.trace.events import ModelCall, ToolCall
from harnesslab.core.trace.tool_uses import ToolTally, named

_DIGITS = re.compile(r"[0-9]+")


class Repair(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers that were rejected for one reason."""

    times: int = 0
    recovered: int = 0
    """How often a later attempt of the same step was accepted."""


@dataclass(slots=True)
class _Asking:
    """One request of an agent for an action, with its attempts so far."""

    step: int
    attempt: int
    answers: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Kinds of fault that wait for a later attempt."""
    accepted: bool = False
    paid: int | None = None
    """Output tokens of the last answer that no named tool call has taken."""
    runs: list[str] = field(default_factory=list)
    """Tools that ran after an answer that named none."""


class Askings:
    """The requests of a trace's agents so far; an asking stays open until its agent's next one."""

    def __init__(self) -> None:
        self.tools = ToolTally()
        self.first_attempts = self.first_valid = self.fatal = 0
        self._open: dict[str, _Asking] = {}
        self._repairs: dict[str, list[int]] = {}

    def add_call(self, event: ModelCall, output: int | None) -> None:
        """Count a model call; `output` are the tokens that its answer cost, where it is known."""
        asking = self._asking_of(event)
        if event.error is not None:
            return
        self._answered(asking, event)
        names = [call.name for call in event.tool_calls]
        self._settle(asking)
        if names:
            self.tools.pay(names, output)
        else:
            asking.paid = output

    def ran(self, event: ToolCall) -> None:
        """Count a tool call."""
        self.tools.ran(event)
        asking = self._open.get(event.agent)
        if asking is not None and asking.paid is not None:
            asking.runs.append(event.name)

    def close(self) -> None:
        """Close what is open: nothing follows."""
        for asking in self._open.values():
            self._close(asking)
        self._open = {}

    @property
    def repairs(self) -> dict[str, Repair]:
        """Rejected answers by kind of fault."""
        return {kind: Repair(times, recovered) for kind, (times, recovered) in self._repairs.items()}

    def _asking_of(self, event: ModelCall) -> _Asking:
        """Return the asking that a call is an attempt of."""
        known = self._open.get(event.agent)
        if known is not None and known.step == event.step and event.attempt > known.attempt:
            known.attempt = event.attempt
            return known
        if known is not None:
            self._close(known)
        self._open[event.agent] = opened = _Asking(event.step, event.attempt)
        return opened

    def _answered(self, asking: _Asking, event: ModelCall) -> None:
        first, asking.answers = asking.answers == 0, asking.answers + 1
        self.first_attempts += first
        if event.rejected is None:
            self.first_valid += first
            asking.accepted = True
            for kind, times in asking.rejected.items():
                self._repairs[kind][1] += times
            asking.rejected.clear()
            return
        kind = named(self._repairs, fault(event.rejected))
        self._repairs.setdefault(kind, [0, 0])[0] += 1
        asking.rejected[kind] += 1

    def _settle(self, asking: _Asking) -> None:
        """Give the tokens of an answer that named no tool to what ran after it."""
        if asking.runs:
            self.tools.pay(asking.runs, asking.paid)
        asking.paid, asking.runs = None, []

    def _close(self, asking: _Asking) -> None:
        self._settle(asking)
        self.fatal += asking.answers > 0 and not asking.accepted


def fault(reason: str) -> str:
    """Return the kind of fault that a reason names: what is before its first colon, numbers left out."""
    return _DIGITS.sub("#", reason.partition(":")[0].strip()) or "rejected"
