"""Regression cases as read models: the frozen prefix, the predicate, and how often it was met under each revision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import QuerySet

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.statistics import Rate
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.trace.events import ModelCall, ToolCall
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.reruns.listing import RerunView, rerun_views
from harnesslab.queries.rollouts.events import EventRow, event_row
from harnesslab.queries.rollouts.listing import RolloutRow, get_rollout, row_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import RegressionCase, Rerun

SHOWN = 60
"""Events of the prefix that are shown, the last ones before the step."""
HELD = 200
"""Characters of an argument that a suggested predicate holds."""


class Measurement(ReadModel):
    """One rerun of a regression case under a revision of the harness."""

    revision: str
    recorded: bool
    """Whether that is the revision that made the recording."""
    engine: str
    """Another engine than the recorded one; empty for that."""
    rerun: RerunView


class RegressionRow(ReadModel):
    """A regression case in a list; steps count from 0."""

    id: int
    name: str
    project: str
    parent: RolloutRow
    from_step: int
    predicate: dict[str, object]
    predicate_sentence: str
    headline: str
    measurements: list[Measurement]
    """The newest first."""
    created_at: datetime

    @property
    def running(self) -> bool:
        """Whether a measurement has not ended."""
        return any(not item.rerun.ended for item in self.measurements)


class Suggestion(ReadModel):
    """A predicate that the recording meets at a step, to begin with."""

    what: str
    tool: str
    argument: str
    holds: str


def get_regression(case_id: int) -> RegressionCase:
    """Return a regression case's row; raises `NotFound`."""
    found = _cases().filter(pk=case_id).first()
    if found is None:
        raise NotFound(f"there is no regression case {case_id}")
    return found


def regressions(limit: int = 100) -> list[RegressionRow]:
    """Return regression cases, newest first, in the same queries however many there are."""
    return _rows(_cases().order_by("-id")[:limit])


def regression(case_id: int) -> RegressionRow:
    """Return one regression case; raises `NotFound`."""
    return _rows([get_regression(case_id)])[0]


def prefix(case: RegressionRow) -> list[EventRow]:
    """Return the last events that come before a case's step, as they are served or rebuilt."""
    reader = StoredTraceReader(get_rollout(case.parent.id))
    places = [place for place, step in enumerate(reader.steps) if step < case.from_step][-SHOWN:]
    rows, before = [], -1
    for place in places:
        event = reader.event(place)
        rows.append(event_row(event, place, opens_step=event.step != before))
        before = event.step
    return rows


def suggestion(rollout_id: int, step: int) -> Suggestion:
    """Suggest a predicate from what was decided at a step: its first tool call, or what the model answered."""
    reader = StoredTraceReader(get_rollout(rollout_id))
    answer = ""
    for place, at in enumerate(reader.steps):
        if at != step:
            continue
        event = reader.event(place)
        if isinstance(event, ToolCall):
            return _of_call(event)
        if isinstance(event, ModelCall) and event.error is None:
            answer = event.text or ""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    return Suggestion(what=What.ANSWER.value, tool="", argument="", holds=line[:HELD])


def _of_call(call: ToolCall) -> Suggestion:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    for name, value in arguments.items():
        text = value if isinstance(value, str) else canonical_bytes(value).decode(errors="replace")
        if text.strip():
            return Suggestion(what=What.ARGUMENT.value, tool=call.name, argument=name, holds=text[:HELD])
    return Suggestion(what=What.TOOL_CALL.value, tool=call.name, argument="", holds="")


def headline(measurements: Sequence[Measurement], predicate: str) -> str:
    """Say what the newest measurement of the recorded revision and that of the newest other one show together."""
    ended = [item for item in measurements if item.rerun.bad is not None and item.rerun.bad.n]
    before = next((item for item in ended if item.recorded), None)
    alike = [item for item in ended if not item.recorded and (before is None or _alike(item, before))]
    after = alike[0] if alike else None
    if before is None or after is None:
        if not ended:
            return _not_counted(measurements)
        missing = "under another revision" if after is None else "under the recorded revision"
        said = f"{predicate[:1].upper()}{predicate[1:]}: {_told(ended[0])}."
        return f"{said} Not measured yet {missing} with the same seeds and engine."
    one, two = before.rerun.bad, after.rerun.bad
    if one is None or two is None:
        return "Not measured yet."
    tail = f"{after.rerun.mode}, {after.rerun.population}"
    if not one.k:
        return (
            f"Passes before the change ({_rate(one)}), so that passing after it ({_rate(two)}) shows nothing; {tail}."
            if not two.k
            else f"Passes before the change ({_rate(one)}), fails after it ({_rate(two)}); {tail}."
        )
    if two.k:
        return f"Fails before the change ({_rate(one)}) and still after it ({_rate(two)}); {tail}."
    apart = "" if two.high < one.low else " The intervals overlap: more attempts would tell them apart."
    return f"Fails before the change ({_rate(one)}), passes after it ({_rate(two)}); {tail}.{apart}"


def _not_counted(measurements: Sequence[Measurement]) -> str:
    if not measurements:
        return "Not measured yet."
    over = all(item.rerun.ended for item in measurements)
    return "Measured, but no attempt counts." if over else "Being measured: no attempt counts yet."


def _alike(one: Measurement, other: Measurement) -> bool:
    """Say whether two measurements are of one population, mode and engine, so that they can be set side by side."""
    facts = [(item.rerun.population, item.rerun.mode, item.engine) for item in (one, other)]
    return facts[0] == facts[1]


def _told(item: Measurement) -> str:
    rate = item.rerun.bad
    shown = _rate(rate) if rate is not None else "no attempt counts"
    which = "the recorded revision" if item.recorded else f"revision {item.revision[:8]}"
    return f"{shown} under {which}, {item.rerun.mode}, {item.rerun.population}"


def _rate(rate: Rate) -> str:
    return f"{rate.k}/{rate.n}, 95 % CI {100 * rate.low:.0f}–{100 * rate.high:.0f} %"


def _cases() -> QuerySet[RegressionCase]:
    parents = ("parent__case__panel", "parent__project", "parent__experiment", "project")
    return RegressionCase.objects.select_related(*parents).defer("parent__search")


def _rows(cases: Iterable[RegressionCase]) -> list[RegressionRow]:
    found = list(cases)
    parents = ("parent__case__panel", "parent__project", "parent__experiment", "regression")
    measured = Rerun.objects.select_related(*parents).filter(regression__in=found).order_by("-id")
    by_case: dict[int, list[RerunView]] = defaultdict(list)
    for view in rerun_views(measured):
        by_case[view.regression or 0].append(view)
    return [_row(case, by_case[case.pk]) for case in found]


def _row(case: RegressionCase, reruns: Sequence[RerunView]) -> RegressionRow:
    predicate = Predicate.from_json(case.predicate)
    measurements = [
        Measurement(
            revision=str(view.plan.get("revision") or case.parent.revision),
            recorded=not view.plan.get("revision"),
            engine=str(view.plan.get("engine") or ""),
            rerun=view,
        )
        for view in reruns
    ]
    return RegressionRow(
        id=case.pk,
        name=case.name,
        project=case.project.name,
        parent=row_of(case.parent),
        from_step=case.from_step,
        predicate=dict(case.predicate),
        predicate_sentence=predicate.sentence,
        headline=headline(measurements, predicate.sentence),
        measurements=measurements,
        created_at=case.created_at,
    )
