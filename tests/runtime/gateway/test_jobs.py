"""A command harness as a job: stored with what it takes to run it again, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.core.errors import Conflict
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.trace import seals
from harnesslab.queries.reruns.listing import recipe_of, rerun_view
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Engine, Job, Rollout
from tests.runtime.driver.rig import case, model, repository
from tests.runtime.gateway.rig import TINY, answer
from tests.workers.ordering import ENGINE, order, register
from workers.tasks import rollouts as task
from workers.tasks.job_runs import JobRun

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_wake_up")]

ANSWERS = (answer("I look", "echo hi > a; cat a", number=1), answer("done", number=2))
CASE = case("say hi", tests={"there": '[ "$(cat a)" = hi ]'})


def run(job: Job) -> Rollout:
    made = task.run_rollout(JobRun(job.pk, job.payload, lambda *_: True, lambda: False))
    return get_rollout(made["rollout"])


def test_it_is_stored_sealed_and_runs_again_from_its_record_and_live(tmp_path: Path) -> None:
    words = ("python3", "/harness/harness.py", "responses", "{instruction}")
    source = HarnessSource("tiny", str(repository(tmp_path / "code", TINY)), "r1", HarnessKind.COMMAND, command=words)
    with model(*ANSWERS) as served:
        register(served.address)
        parent = run(order(Recipe(source, CASE, ENGINE)))
    assert (parent.outcome, parent.grade, parent.steps, parent.reward) == ("solved", "live-rerunnable", 2, 1.0)
    assert "runs its tools by itself" in parent.missing
    assert recipe_of(parent).harness.revision == parent.revision
    reader = StoredTraceReader(parent)
    seals.verify(reader.trace(), reader.seals())
    assert reader.manifest.value("harness.protocol") == "gateway"
    assert reader.manifest.value("environment.network") == "none but loopback ports 8080 of the worker"
    with pytest.raises(Conflict, match="tools of a command harness run anew"):
        reruns.request(parent.pk, RerunPlan(mode=Mode.RECORDED), user=None)
    for plan, asked in ((RerunPlan(mode=Mode.HYBRID), 0), (RerunPlan(mode=Mode.LIVE), 2)):
        with model(*ANSWERS) as served:
            Engine.objects.update(address=served.address)
            rerun = reruns.request(parent.pk, plan, user=None)
            for job in Job.objects.filter(group=f"rerun {rerun.pk}"):
                run(job)
            assert len(served.bodies) == asked
        assert rerun_view(rerun.pk).attempts[0].status == "as the parent"
