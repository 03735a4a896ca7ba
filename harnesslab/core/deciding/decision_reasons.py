"""All reasons of a decision, read from its document whoever wrote it, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.deciding.decision_words import reason_words
from harnesslab.core.deciding.secondary import FavouredSide
from harnesslab.core.measuring.attribution import Attribution

FEW = 4
"""Names that a reason spells out before it only counts the others."""


class ComparedReward(msgspec.Struct, frozen=True):
    """A secondary reward as the document states it."""

    name: str
    before: JSON
    after: JSON
    outcome: str
    detail: str


class Reasons(msgspec.Struct, frozen=True):
    """What a decision rests on; what its document doesn't say is empty or None."""

    refused: str = ""
    """Why the two are no comparison; empty where they are."""
    new: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    baseline_untrusted: tuple[str, ...] = ()
    secondary: tuple[ComparedReward, ...] = ()
    criterion: str = ""
    p: float | None = None
    method: str = ""
    excluded: Mapping[str, str] = {}
    faults: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    provisional: bool = False
    trials: int | None = None
    candidates: int | None = None
    gate: bool | None = None
    attributions: tuple[Attribution, ...] | None = None
    """None where nothing was attributed."""

    @property
    def flips(self) -> tuple[Attribution, ...]:
        """The cases solved on one side only."""
        return tuple(each for each in self.attributions or () if each.flipped)

    @property
    def attributable(self) -> tuple[int, int] | None:
        """How many flips the change explains, of how many; None where nothing was attributed."""
        if self.attributions is None:
            return None
        return sum(each.attributable for each in self.flips), len(self.flips)


def reasons_of(document: Mapping[str, JSON]) -> Reasons:
    """Read a decision; parts that are not as they should be are left out, never an error."""
    p, gate = document.get("p"), document.get("gate")
    found, excluded = document.get("attribution"), document.get("excluded")
    return Reasons(
        refused=_text(document.get("refused")),
        new=_names(document.get("new_solves")),
        lost=_names(document.get("regressions")),
        untrusted=_names(document.get("invalid_infra_tasks")),
        baseline_untrusted=_names(document.get("baseline_untrusted")),
        secondary=tuple(_compared(each) for each in _items(document.get("secondary_rewards"))),
        criterion=_text(document.get("criterion")),
        p=float(p) if isinstance(p, int | float) and not isinstance(p, bool) else None,
        method=_text(document.get("method")),
        excluded={case: _text(why) for case, why in excluded.items()} if isinstance(excluded, Mapping) else {},
        faults=_names(document.get("measurement_faults")),
        not_shown=_names(document.get("identity_not_shown")),
        provisional=document.get("provisional") is True,
        trials=_whole(document.get("trials")),
        candidates=_whole(document.get("candidates")),
        gate=gate if isinstance(gate, bool) else None,
        attributions=_attributions(found) if isinstance(found, list) else None,
    )


def brief(reason: str, reasons: Reasons) -> str:
    """Say in a few words why it was so decided."""
    parts = []
    if reasons.lost:
        parts.append(f"lost {listed(reasons.lost)}")
    if reasons.new:
        parts.append(f"gained {listed(reasons.new)}")
    decided = next(
        (each for each in reasons.secondary if each.outcome in (FavouredSide.CANDIDATE, FavouredSide.BASELINE)), None
    )
    if decided is not None and not parts:
        parts.append(f"{words(decided.name)} {_value(decided.before)} → {_value(decided.after)}")
    if reason == "infra_sensitive_verdict" and reasons.untrusted:
        parts.append(f"verdict depends on {listed(reasons.untrusted)}")
    return "; ".join(parts) or reason_words(reason)


def sentences(reasons: Reasons) -> list[str]:
    """Say every reason, one sentence each."""
    said = [f"Refused as a comparison: {reasons.refused}."] if reasons.refused else []
    if reasons.new:
        said.append(f"Newly solved: {', '.join(reasons.new)}.")
    if reasons.lost:
        said.append(f"Regressions: {', '.join(reasons.lost)}.")
    if reasons.untrusted:
        said.append(
            f"Its verdict can't be trusted in {', '.join(reasons.untrusted)}: crash, infrastructure or no judgement."
        )
    if reasons.baseline_untrusted:
        said.append(f"The baseline's verdict can't be trusted in {', '.join(reasons.baseline_untrusted)}.")
    said += [_secondary(each) for each in reasons.secondary]
    if reasons.p is not None:
        among = selected(reasons.candidates)
        said.append(f"Two-sided p = {reasons.p:.3g} ({reasons.method or 'method not stated'}){among}.")
    if (count := reasons.attributable) is not None:
        said.append(attributed(*count))
    if reasons.faults:
        said.append(f"Measurement fault: {', '.join(reasons.faults)} parted though the change had not acted.")
    if reasons.provisional:
        said.append("Provisional: one trial a case, on an engine that is not certified to repeat its answers.")
    if reasons.not_shown:
        unknown = (
            f"{len(reasons.not_shown)} condition{'s are' if len(reasons.not_shown) != 1 else ' is'} not shown equal"
        )
        said.append(f"{unknown} on both sides, since unknown somewhere: {listed(reasons.not_shown)}.")
    return said


def selected(candidates: int | None) -> str:
    """Say beside a p-value that the candidate is one of several that were tried; nothing for the only one."""
    if candidates is None or candidates < 2:
        return ""
    return f", of one of {candidates} candidates tried on this panel, not corrected for choosing among them"


def attributed(explained: int, flips: int) -> str:
    """Say how many flips the change explains."""
    if not flips:
        return "No case flipped."
    return f"{explained} of {flips} flip{'s' if flips != 1 else ''} attributable to the change."


def listed(names: Sequence[str], few: int = FEW) -> str:
    """Write names out, or how many there are."""
    return ", ".join(names) if len(names) <= few else f"{', '.join(names[: few - 1])} and {len(names) - few + 1} more"


def words(name: str) -> str:
    """Write a name from code as words."""
    return name.replace("_", " ")


_SIDES = {
    FavouredSide.CANDIDATE: "better",
    FavouredSide.BASELINE: "worse",
    FavouredSide.TIED: "tied",
    FavouredSide.UNAVAILABLE: "can't be compared",
}


def _secondary(each: ComparedReward) -> str:
    side = _SIDES.get(FavouredSide(each.outcome), "") if each.outcome in set(FavouredSide) else words(each.outcome)
    detail = f" ({each.detail})" if each.detail else ""
    return f"{words(each.name).capitalize()}: {_value(each.before)} → {_value(each.after)}, {side}{detail}."


def _value(value: JSON) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _compared(each: Mapping[str, JSON]) -> ComparedReward:
    return ComparedReward(
        _text(each.get("name")),
        each.get("baseline_value"),
        each.get("candidate_value"),
        _text(each.get("outcome")),
        _text(each.get("detail")),
    )


def _attributions(found: Sequence[JSON]) -> tuple[Attribution, ...]:
    read = []
    for each in found:
        try:
            read.append(msgspec.convert(each, type=Attribution))
        except msgspec.ValidationError:
            continue
    return tuple(read)


def _items(value: JSON) -> list[Mapping[str, JSON]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _names(value: JSON) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _whole(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
