"""What a rerun would do and cost before it is asked for, and why it can't be run where it can't."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import NotFound
from harnesslab.core.running.recipe import SideEffects
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch
from harnesslab.queries.reruns.previews import preview, together
from harnesslab.store.models import Engine, Rollout
from tests import live
from tests.recordings import changed, recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
LIVE = RerunPlan(mode=Mode.LIVE)


def test_a_live_rerun_costs_what_the_recording_states_times_its_attempts() -> None:
    row = live.rerunnable()
    once, thrice = preview(row.pk, LIVE), preview(row.pk, RerunPlan(mode=Mode.LIVE, attempts=3))
    assert (once.refused, once.calls, once.prompt_tokens, once.output_tokens) == ("", 3, 303, 30)
    assert once.sentence.startswith("About 3 model calls, 303 prompt tokens, 30 output tokens")
    assert (thrice.calls, thrice.output_tokens) == (9, 90)
    assert thrice.sentence.startswith("3 attempts: about 9 model calls")


def test_tokens_that_no_call_states_are_unknown_rather_than_none() -> None:
    row = live.rerunnable()
    other = store_recording(changed(recording(trial=1), 9, usage=None), None)
    Rollout.objects.filter(pk=other.pk).update(recipe=bytes(row.recipe))
    found = preview(other.pk, LIVE)
    assert (found.calls, found.prompt_tokens, found.output_tokens) == (3, None, None)
    assert "prompt tokens unknown, output tokens unknown" in found.sentence


def test_a_recorded_rerun_makes_no_call_and_executes_nothing() -> None:
    found = preview(live.rerunnable().pk, RerunPlan(mode=Mode.RECORDED))
    assert (found.calls, found.commands) == (0, 0)
    assert found.sentence == "It makes no model call; no command is executed."


def test_a_hybrid_one_that_may_leave_the_record_says_that_it_may_cost_more() -> None:
    plan = RerunPlan(mode=Mode.HYBRID, on_miss=OnMiss.LIVE)
    assert preview(live.rerunnable().pk, plan).sentence.endswith("; more where it leaves the record.")


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (RerunPlan(mode=Mode.LIVE, from_step=9), "so that it can't be forked at step 10"),
        (RerunPlan(mode=Mode.LIVE, engine="gone"), "no engine is registered as 'gone'"),
        (RerunPlan(mode=Mode.HYBRID, switches={"tool:gone": Switch.LIVE}), "this recording has no tool:gone"),
    ],
)
def test_what_can_not_be_run_says_why(plan: RerunPlan, why: str) -> None:
    found = preview(live.rerunnable().pk, plan)
    assert why in found.refused
    assert "\n" not in found.refused


def test_a_command_that_timed_out_names_the_nearest_step_that_can_be_forked_at() -> None:
    row = live.timed_out(1)
    found = preview(row.pk, RerunPlan(mode=Mode.LIVE, from_step=2))
    assert found.nearest == found.latest
    assert found.nearest is not None
    assert found.refused.endswith(f"the nearest safe one is step {found.nearest + 1}")


def test_external_tools_are_named_and_not_executed_again() -> None:
    found = preview(live.rerunnable(effects=SideEffects.EXTERNAL).pk, LIVE)
    assert found.external == ["run"]
    assert found.commands == 0


def test_without_a_recipe_a_retired_engine_or_an_end_nothing_can_be_run_and_costs_are_unknown() -> None:
    imported = store_recording(recording(), None)
    found = preview(imported.pk, LIVE)
    assert found.refused.endswith("no harness is bound to it that a worker can run")
    assert (found.calls, found.prompt_tokens, found.seconds, found.sentence) == (None, None, None, "")
    row = live.rerunnable(trial=1)
    Engine.objects.update(retired=True)
    assert "is retired" in preview(row.pk, LIVE).refused
    running = Recorder(recording(trial=9)).rollout
    Rollout.objects.filter(pk=running.pk).update(recipe=bytes(row.recipe))
    assert preview(running.pk, LIVE).refused == "it still runs"
    with pytest.raises(NotFound, match="there is no rollout 999"):
        preview(999, LIVE)


def test_several_cost_what_all_of_them_cost_and_what_one_does_not_know_is_unknown() -> None:
    known = [preview(live.rerunnable(trial=trial).pk, LIVE) for trial in range(2)]
    assert together([], LIVE) == ""
    assert together(known[:1], LIVE) == known[0].sentence
    said = together(known, LIVE)
    assert said.startswith("Over 2 rollouts: about 6 model calls, 606 prompt tokens, 60 output tokens")
    unknown = preview(store_recording(recording(trial=7), None).pk, LIVE)
    assert together([*known, unknown], LIVE) == f"{said} 1 more can't be run again."
    assert together([known[0], unknown], LIVE) == f"{known[0].sentence} 1 more can't be run again."
    assert together([unknown], LIVE) == ""


def test_a_preview_takes_as_many_queries_for_a_long_trace_as_for_a_short_one(
    django_assert_max_num_queries: Any,
) -> None:
    for row in (live.rerunnable(), live.rerunnable([f"c {n}" for n in range(60)], trial=1)):
        with django_assert_max_num_queries(6):
            preview(row.pk, LIVE)
