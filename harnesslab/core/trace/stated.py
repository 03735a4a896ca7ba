"""What a source states of a rollout as a whole, in `extra` of its closing event, and its balance with the events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose

from harnesslab.core.canonical import JSON
from harnesslab.core.trace import usage
from harnesslab.core.trace.answers import COPIED, served, stated_usage
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, Usage, Verification

TOTALS = "stated"
"""Key of the totals that the source states of the rollout."""
BALANCE = "balance"
"""Key of the lines that set them against what is stored."""
COSTS = ("cost", "cost_usd")
"""Keys in `extra` of a model call that say what it cost."""
_TOKENS = {
    "input": "input tokens",
    "output": "output tokens",
    "cached": "cached tokens",
    "reasoning": "reasoning tokens",
}
_WORDS = {"messages": "messages", "calls": "model calls", **_TOKENS, "cost": "cost"}


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals that a source states of one rollout; None where it states none."""

    messages: int | None = None
    """Of the source's own rows: messages, or what else `rows` calls them."""
    calls: int | None = None
    """Model calls that were asked live, those that failed or were rejected included."""
    input: int | None = None
    """Tokens as `Usage` counts them."""
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cost: float | None = None
    passed: bool | None = None
    kept_messages: int | None = None
    """How many of `messages` became an event or part of an input, as the reader counts them."""
    rows: str = "messages"

    @classmethod
    def of(cls, tokens: Usage | None, **more: int | float | str | None) -> Totals:
        """Make totals of a usage and what else is stated; 0 in and 0 out is how many sources write *not counted*."""
        known = tokens if tokens is not None and (tokens.input or tokens.output) else Usage()
        counted = {"input": known.input, "output": known.output, "cached": known.cache_read}
        return cls(**{**counted, "reasoning": known.reasoning, **more})  # type: ignore[arg-type]

    def to_json(self) -> dict[str, JSON]:
        """Return what is stated."""
        found = {name: getattr(self, name) for name in (*_WORDS, "passed")}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BalanceLine:
    """One total of the source, against what is stored."""

    what: str
    total: JSON
    """As the source states it."""
    stored: JSON
    """None where nothing of it is stored."""

    @property
    def short(self) -> bool:
        """Say whether less is stored than the source states."""
        if self.stored is None or isinstance(self.total, bool | str) or isinstance(self.stored, bool | str):
            return self.stored != self.total
        if isinstance(self.total, int | float) and isinstance(self.stored, int | float):
            return self.stored < self.total and not isclose(self.stored, self.total, rel_tol=1e-6, abs_tol=1e-9)
        return False

    def __str__(self) -> str:
        if not self.short:
            return f"{self.what} {_shown(self.stored)} of {_shown(self.total)}"
        stored = "none is stored" if self.stored is None else f"{_shown(self.stored)} stored"
        return f"{self.what}: the source states {_shown(self.total)}, {stored}"

    def to_json(self) -> dict[str, JSON]:
        """Return the line as an event keeps it."""
        return {"what": self.what, "total": self.total, "stored": self.stored}


def balance(totals: Totals, events: Iterable[AnyEvent]) -> tuple[BalanceLine, ...]:
    """Set a source's totals against its events; totals that no event states are stored as totals, and so are even."""
    stored = _stored(totals, events)
    lines = [
        BalanceLine(totals.rows if name == "messages" else word, value, stored[name])
        for name, word in _WORDS.items()
        if (value := getattr(totals, name)) is not None
    ]
    if totals.passed is not None:
        lines.append(BalanceLine("verdict", _verdict(totals.passed), stored["passed"]))
    return tuple(lines)


def lines_of(extra: Mapping[str, JSON]) -> tuple[BalanceLine, ...]:
    """Read the balance that a closing event's `extra` keeps; what is none is left out."""
    found = extra.get(BALANCE)
    rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    return tuple(BalanceLine(str(row.get("what")), row.get("total"), row.get("stored")) for row in rows)


def total_usage(event: RolloutEnded) -> Usage:
    """Return the tokens that a closing event states for the whole rollout."""
    found = event.extra.get(TOTALS)
    known = found if isinstance(found, Mapping) else {}
    counts = [known.get(name) for name in ("input", "output", "cached", "reasoning")]
    whole = [count if isinstance(count, int) and count >= 0 else None for count in counts]
    return Usage(input=whole[0], output=whole[1], cache_read=whole[2], reasoning=whole[3])


def _stored(totals: Totals, events: Iterable[AnyEvent]) -> dict[str, JSON]:
    calls: list[ModelCall] = []
    passed: JSON = None
    for event in events:
        if isinstance(event, ModelCall) and event.extra.get(COPIED) is not True:
            calls.append(event)
        elif isinstance(event, Verification) and event.passed is not None:
            passed = _verdict(event.passed)
    counted = usage.total([stated_usage(call) for call in calls])
    none = counted.input is None and counted.output is None
    costs = [cost for call in calls if (cost := _cost(call)) is not None]
    return {
        "messages": totals.kept_messages,
        "calls": sum(not served(call) for call in calls),
        "input": totals.input if none else counted.input,
        "output": totals.output if none else counted.output,
        "cached": totals.cached if none else counted.cache_read or 0,
        "reasoning": totals.reasoning if none else counted.reasoning or 0,
        "cost": sum(costs) if costs else totals.cost,
        "passed": passed,
    }


def _cost(call: ModelCall) -> float | None:
    for key in COSTS:
        value = call.extra.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _verdict(passed: bool) -> str:
    return "passed" if passed else "failed"


def _shown(value: JSON) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def sentences(lines: Sequence[BalanceLine]) -> list[str]:
    """Say what is short."""
    return [str(line) for line in lines if line.short]
