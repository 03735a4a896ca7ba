"""Why two rollouts ended differently: cut short and by whose doing, other workspaces, or other verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harnesslab.core.comparing.evidence import Cause, pair, short
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength, harness_hypothesis
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import AnyEvent, HarnessAction, RolloutEnded, Verification

CUT_SHORT = frozenset({"timeout", "verify_timeout", "infra_error", "interrupted", "crash"})
"""Outcomes of rollouts that something from outside ended."""
_INFRA = re.compile(
    r"(?i)rate.?limit|overloaded|\b(?:429|50\d|529)\b|api.?(?:connection|status|timeout|error)"
    r"|connection (?:refused|reset)"
    r"|authentication|unauthori[sz]ed|quota|insufficient.?(?:credit|funds|balance)|service unavailable|litellm"
)
_ENVIRONMENT = re.compile(
    r"(?i)docker|container|sandbox|compose|image (?:not|pull)|no space left|disk quota|read-only file system|daemon"
    r"|environment.?(?:start|set.?up|build)|tmux|kubernetes"
)
_RAISED = re.compile(r"Traceback|\b[A-Z]\w*(?:Error|Exception|Exit)\b|panicked at|segmentation fault")
_STAMP = re.compile(r"(?m)^((?:---|\+\+\+) [^\t\n]*)\t.*$")
_INDEX = re.compile(r"(?m)^index [0-9a-f]+\.\.[0-9a-f]+(?: \d+)?$\n?")
_WHOSE = {
    Cause.INFRA: "the provider's or the network's",
    Cause.ENVIRONMENT: "the environment's",
    Cause.HARNESS: "the harness's",
    Cause.UNKNOWN: "not recorded whose",
}
_ORIGINS = {"harness": Cause.HARNESS, "workspace": Cause.ENVIRONMENT, "environment": Cause.ENVIRONMENT}


def both_ended(left: RolloutEnded, right: RolloutEnded, declared: Sequence[ConditionPair]) -> Hypothesis:
    """Explain two ends that differ after equal events."""
    ended = (pair("outcome", left.outcome, right.outcome),)
    if left.outcome == right.outcome:
        return _workspaces(left, right, declared)
    short_ones = [(name, each) for name, each in (("A", left), ("B", right)) if each.outcome in CUT_SHORT]
    if short_ones:
        which, end = short_ones[0]
        cause = whose(end)
        return Hypothesis(cause, f"{which} was cut short{_error(end, cause)}", ended)
    why = "everything before is equal, yet they ended differently"
    return Hypothesis(Cause.UNKNOWN, why, ended, strength=Strength.OPEN)


def _workspaces(left: RolloutEnded, right: RolloutEnded, declared: Sequence[ConditionPair]) -> Hypothesis:
    row = pair("workspace", left.diff, right.diff)
    one, two = left.diff or "", right.diff or ""
    undated = _STAMP.sub(r"\1", one), _STAMP.sub(r"\1", two)
    if undated[0] == undated[1]:
        why = "the workspaces changed alike: their diffs differ in time stamps alone"
        return Hypothesis(Cause.CLOCK, why, (row,), strength=Strength.RECORDED)
    if _INDEX.sub("", undated[0]) == _INDEX.sub("", undated[1]):
        stamps = "time stamps and index hashes" if undated != (one, two) else "index hashes"
        why = f"the workspaces changed alike: their diffs differ in {stamps} alone"
        cause = Cause.CLOCK if undated != (one, two) else Cause.RECORDING
        return Hypothesis(cause, why, (row,), strength=Strength.RECORDED)
    return harness_hypothesis("everything before is equal, yet the workspaces differ at the end", (row,), declared)


def one_ended(left: AnyEvent, right: AnyEvent) -> Hypothesis:
    """Explain one trace that ended where the other went on."""
    which, ended = ("A", left) if isinstance(left, RolloutEnded) else ("B", right)
    if isinstance(ended, RolloutEnded) and ended.outcome in CUT_SHORT:
        cause = whose(ended)
        return Hypothesis(cause, f"{which} was cut short here{_error(ended, cause)}", boundary="harness")
    if isinstance(left, Verification) or isinstance(right, Verification):
        why = f"no verdict of {which} is recorded, and one of the other is"
        return Hypothesis(Cause.UNKNOWN, why, boundary="harness", strength=Strength.OPEN)
    return Hypothesis(Cause.HARNESS, f"{which} ended here while the other went on", boundary="harness")


def crash_before_first_call(a: TraceReader, b: TraceReader) -> Hypothesis | None:
    """Explain a pair of which one never reached its model because it crashed; None where that isn't so."""
    for which, reader, other in (("A", a, b), ("B", b, a)):
        if "model_call" in reader.kinds or "model_call" not in other.kinds or not reader.kinds:
            continue
        ended = reader.event(len(reader.kinds) - 1)
        if not isinstance(ended, RolloutEnded) or ended.outcome not in CUT_SHORT:
            continue
        error = ended.error or _last_error(reader)
        cause = _ORIGINS.get(reader.identity.crash_origin) or whose(ended, error)
        named = f"“{short(error)}”" if error else "no error is recorded"
        what = "crashed" if ended.outcome == "crash" else f"was cut short ({ended.outcome.replace('_', ' ')})"
        why = f"{which} {what} before its first model call: {named}, {_WHOSE[cause]}"
        row = pair("error", *((error, None) if which == "A" else (None, error)))
        return Hypothesis(cause, why, (row,), boundary="harness", strength=Strength.RECORDED)
    return None


def _last_error(reader: TraceReader) -> str | None:
    """Return the error that the harness or verifier recorded last, where the end states none."""
    for index in range(len(reader.kinds) - 1, -1, -1):
        event = reader.event(index)
        if isinstance(event, Verification) and event.error:
            return event.error
        if isinstance(event, HarnessAction) and "error" in event.name and isinstance(event.detail, str):
            return event.detail
    return None


def whose(ended: RolloutEnded, error: str | None = None) -> Cause:
    """Say whose doing an end from outside was, by its recorded origin, its outcome, and what its error names."""
    stated = ended.extra.get("crash_origin", ended.extra.get("origin"))
    if isinstance(stated, str) and stated in _ORIGINS:
        return _ORIGINS[stated]
    message = error or ended.error or ""
    if ended.outcome != "crash":
        return Cause.INFRA
    for pattern, cause in ((_INFRA, Cause.INFRA), (_ENVIRONMENT, Cause.ENVIRONMENT), (_RAISED, Cause.HARNESS)):
        if pattern.search(message):
            return cause
    return Cause.UNKNOWN


def _error(ended: RolloutEnded, cause: Cause) -> str:
    outcome = ended.outcome.replace("_", " ")
    return f" ({outcome}: “{short(ended.error)}”, {_WHOSE[cause]})" if ended.error else f" ({outcome})"
