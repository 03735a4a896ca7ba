"""Waiting for the lab's own ceiling is the lab's doing: it costs no time budget and makes no failure of an agent."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from harnesslab.actions.engines import slots
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe
from harnesslab.core.trace.events import ModelCall
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Job, Rollout
from tests.runtime.driver.rig import case, model, repository
from tests.runtime.gateway.rig import answer
from tests.workers.ordering import ENGINE, order, recipe, register
from workers.tasks import rollouts as task
from workers.tasks.job_runs import JobRun

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.queue.wake", lambda *_: None)
    monkeypatch.setattr(task, "PAUSE_S", 0.0)


@contextlib.contextmanager
def busy(engine: int, seconds: float) -> Iterator[None]:
    """Hold the only place of an engine for some seconds, as another rollout's long answer would."""

    def let_go() -> None:
        slots.slots().give_back(engine, "another")
        connection.close()

    assert slots.slots().ask(engine, 1, "another")
    timer = threading.Timer(seconds, let_go)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def run(job: Job, progress: Callable[[int, str], bool] = lambda *_: True) -> Rollout:
    task.run_rollout(JobRun(job.pk, job.payload, progress, lambda: False))
    return Rollout.objects.order_by("-pk")[0]


def facts(rollout: Rollout) -> Any:
    return facts_of(get_rollout(rollout.pk))


def waited(call: ModelCall) -> Any:
    return call.extra["waited"]


def calls(rollout: Rollout) -> list[ModelCall]:
    events = StoredTraceReader(get_rollout(rollout.pk)).trace().events
    return [event for event in events if isinstance(event, ModelCall)]


def test_the_time_budget_stands_still_while_a_call_waits_for_its_turn(tmp_path: Path) -> None:
    with model("submit") as served:
        engine = register(served.address, ceiling=1)
        job = order(recipe(tmp_path, case(wall=2.0, tests={"true": "true"})))
        with busy(engine, 3.0):
            began = time.monotonic()
            rollout = run(job)
    assert time.monotonic() - began > 2.0
    assert rollout.outcome == "solved"
    assert facts(rollout)["queued"] > 2.0
    assert waited(calls(rollout)[0]) > 2.0


IMPATIENT = """
import os, sys, urllib.request
body = b'{"messages": [{"role": "user", "content": "go"}]}'
for _ in range(int(sys.argv[1])):
    try:
        urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, timeout=1)
        break
    except OSError:
        pass
else:
    sys.exit("no answer")
"""


def impatient(folder: Path, tries: int) -> Recipe:
    """Return a recipe of an agent whose client waits one second for an answer."""
    place = repository(folder / "agent", IMPATIENT)
    command = ("python3", "/harness/harness.py", str(tries))
    source = HarnessSource("impatient", str(place), "r1", HarnessKind.COMMAND, command=command)
    return Recipe(source, case(tests={"true": "true"}), ENGINE)


def test_a_client_that_times_out_in_our_queue_is_recorded_as_ours_and_tried_again(tmp_path: Path) -> None:
    with model(answer("fine")) as served:
        engine = register(served.address, ceiling=1)
        job = order(impatient(tmp_path, tries=1))
        assert slots.slots().ask(engine, 1, "another")
        begun: list[int] = []

        def progress(done: int, _: str) -> bool:
            begun.extend([done] if done == 0 else [])
            if len(begun) == 2:  # the second try finds the engine free
                slots.slots().give_back(engine, "another")
            return True

        run(job, progress)
    first, last = Rollout.objects.order_by("pk")
    assert (first.outcome, last.outcome) == ("infra_error", "solved")
    assert "hung up after" in facts(first)["why"]
    assert "waiting" in facts(first)["why"]
    assert waited(calls(first)[0]) > 0.5
    assert facts(first)["counts"]["requests"] == 0


def test_a_client_that_asks_again_by_itself_goes_on_as_another_attempt_of_its_step(tmp_path: Path) -> None:
    with model(answer("fine")) as served:
        engine = register(served.address, ceiling=1)
        job = order(impatient(tmp_path, tries=9))
        with busy(engine, 2.0):
            run(job)
    rollout = Rollout.objects.get()
    assert rollout.outcome == "solved"
    attempts = calls(rollout)
    assert {call.step for call in attempts} == {0}
    assert [call.error is None for call in attempts][-1]
    assert any("hung up" in (call.error or "") for call in attempts)
