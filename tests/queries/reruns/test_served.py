"""What was served is not lived: it enters no rate, and a rerun that asked nothing itself says nothing of its parent."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.reruns.job_specs import conclude
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ModelCall, ToolCall, Verification
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.comparisons.comparison import aligned, readers_of, row_window
from harnesslab.queries.reruns.listing import rerun_view
from harnesslab.queries.rollouts.events import event_detail, event_window
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rerun, Rollout
from tests import live
from tests.recordings import COMMANDS, recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
HYBRID = RerunPlan(mode=Mode.HYBRID, switches={"model": Switch.LIVE})


def attempt(rerun: Rerun, served: tuple[type, ...], **facts: Any) -> Rollout:
    """Store an attempt in which events of some kinds were served."""
    made = recording(facts=facts)
    events = tuple(
        msgspec.structs.replace(event, extra={"served": "from the record"}, latency=2.0)
        if isinstance(event, served)
        else event
        for event in made.trace.events
    )
    trace = Trace(events, made.trace.payloads, made.trace.digests)
    rollout = store_recording(dataclasses.replace(made, trace=trace), None)
    Rollout.objects.filter(pk=rollout.pk).update(rerun=rerun, mode=rerun.plan["mode"])
    return rollout


COUNTS = {"requests": 2, "answers": 2, "output_tokens": 9, "commands": 0, "served": 3}


def test_a_served_verdict_is_no_sample_and_the_finding_names_what_was_live() -> None:
    rerun = live.asked(live.rerunnable(), HYBRID)
    made = attempt(rerun, (ToolCall, Verification), counts=COUNTS)
    conclude(made.pk, diverged=False)
    view = rerun_view(rerun.pk)
    assert (view.solved.n, dict(view.solved.excluded)) == (0, {"verdict served": 1})
    assert "hybrid (live: model)" in view.sentence
    assert view.counts == COUNTS
    assert view.proof == "2 requests sent, 2 answered with 9 tokens; 0 commands run; 3 served from the record"


def test_a_verdict_of_its_own_counts_though_answers_were_served() -> None:
    rerun = live.asked(live.rerunnable(), HYBRID)
    attempt(rerun, (ModelCall,), counts=COUNTS)
    assert rerun_view(rerun.pk).solved.n == 1


@pytest.mark.parametrize(
    ("plan", "diverged", "counts", "said"),
    [
        (RerunPlan(mode=Mode.LIVE, from_step=1), True, {"requests": 0, "commands": 3}, "drift stopped it before"),
        (RerunPlan(mode=Mode.LIVE, from_step=1), False, {"requests": 0, "commands": 3}, "equal to its parent by con"),
        (HYBRID, False, {"requests": 0, "commands": 0}, "equal to its parent by con"),
    ],
)
def test_an_attempt_that_asked_nothing_itself_is_none(
    plan: RerunPlan, diverged: bool, counts: dict[str, int], said: str
) -> None:
    rerun = live.asked(live.rerunnable(), plan)
    made = attempt(rerun, (), counts=counts)
    conclude(made.pk, diverged=diverged)
    view = rerun_view(rerun.pk)
    assert (view.same.n if view.same else None, view.attempts[0].same) == (0, None)
    assert said in view.attempts[0].status


def test_one_that_left_its_record_once_live_went_another_way() -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.HYBRID, on_miss=OnMiss.STOP))
    made = attempt(rerun, (), counts={"requests": 0, "commands": 0})
    conclude(made.pk, diverged=True)
    assert rerun_view(rerun.pk).attempts[0].same is False


def test_served_events_are_marked_and_their_latency_is_called_recorded() -> None:
    rerun = live.asked(live.rerunnable(), HYBRID)
    made = attempt(rerun, (ToolCall, Verification), counts=COUNTS)
    reader = StoredTraceReader(get_rollout(made.pk))
    rows = event_window(reader, 0).rows
    assert {row.kind for row in rows if row.served} == {"tool_call", "verification"}
    place = next(row.index for row in rows if row.kind == "tool_call")
    detail = event_detail(reader, place)
    assert detail.served == "the record"
    facts = dict(detail.facts)
    assert ("latency" in facts, facts["recorded latency"]) == (False, "2.00 s")


def test_the_outcome_of_a_crash_says_whose_it_was() -> None:
    made = store_recording(recording(outcome=Outcome.CRASH, facts={"crash_origin": "workspace"}), None)
    unsaid = store_recording(recording(outcome=Outcome.CRASH, trial=1), None)
    assert (made.crash_origin, unsaid.crash_origin) == ("workspace", "unknown")


def test_a_wait_is_named_where_anybody_could_feel_it() -> None:
    made = recording()
    waits = iter([0.004, 3.5])
    events = tuple(
        msgspec.structs.replace(event, extra={"waited": next(waits, 0.0)}) if isinstance(event, ModelCall) else event
        for event in made.trace.events
    )
    trace = Trace(events, made.trace.payloads, made.trace.digests)
    reader = StoredTraceReader(store_recording(dataclasses.replace(made, trace=trace), None))
    calls = [place for place, event in enumerate(events) if isinstance(event, ModelCall)]
    said = [dict(event_detail(reader, place).facts).get("waited") for place in calls]
    assert said == [None, "3.50 s for its turn, outside the time budget", None]


def test_a_comparison_marks_the_side_that_was_served(client: Client, viewer: User) -> None:
    parent = live.rerunnable()
    rerun = live.asked(parent, HYBRID)
    made = attempt(rerun, (ToolCall,), counts=COUNTS)
    rows = row_window(aligned(readers_of(parent.pk, made.pk), Contract.parse()), 0).rows
    marked = {(row.a.served, row.b.served) for row in rows if row.a and row.b and row.b.what == "run"}
    assert marked == {("", "the record")}
    client.force_login(viewer)
    page = client.get(f"/compare/?a={parent.pk}&b={made.pk}").content.decode()
    assert page.count('title="served from the record"') == len(COMMANDS)
