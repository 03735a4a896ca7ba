"""An attempt that parts from its parent only where infrastructure failed a request is no sample of either."""

from __future__ import annotations

import pytest

from harnesslab.actions.reruns.job_specs import conclude
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.reruns.listing import rerun_view
from harnesslab.store.models import Job, JobState, Rollout
from tests import live
from tests.recordings import COMMANDS, recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def test_one_that_left_the_record_and_went_on_live_went_another_way_though_nothing_judged_it() -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.HYBRID))
    made = store_recording(recording(outcome=Outcome.UNKNOWN, facts={"went_live_after": {"why": "a miss"}}), None)
    Rollout.objects.filter(pk=made.pk).update(rerun=rerun, mode="hybrid")
    conclude(made.pk, diverged=False)
    assert rerun_view(rerun.pk).attempts[0].same is False


@pytest.mark.parametrize(
    ("commands", "retried", "same", "status"),
    [
        (COMMANDS, -1, True, "as the parent"),
        (("ls", "cat a.txt", "true"), -1, False, "parts from the parent"),
        (COMMANDS, 1, None, "was tried again"),
        (("pwd", *COMMANDS[1:]), 1, False, "parts from the parent"),  # before the request that failed
    ],
)
def test_what_an_attempt_says(commands: tuple[str, ...], retried: int, same: bool | None, status: str) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE))
    made = store_recording(recording(commands, retried=retried), None)
    Rollout.objects.filter(pk=made.pk).update(rerun=rerun, mode="live")
    Job.objects.update(state=JobState.DONE)
    conclude(made.pk, diverged=False)
    view = rerun_view(rerun.pk)
    assert (view.attempts[0].same, view.same.n if view.same else None) == (same, int(same is not None))
    assert status in view.attempts[0].status
    assert view.same is not None
    assert view.same.excluded == ({} if same is not None else {"can't be said": 1})
