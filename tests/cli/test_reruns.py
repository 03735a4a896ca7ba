"""`harnesslab rerun`, `engines` and `engine-add`, as a person types them."""

from __future__ import annotations

import json

import pytest

from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Engine, Job, JobState, Rerun
from tests import live
from tests.cli.commands import run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]


def worker(monkeypatch: pytest.MonkeyPatch, *, same: bool | None, outcome: Outcome = Outcome.SOLVED) -> None:
    """Let the attempts end as soon as the command begins to wait."""

    def ended(_: float) -> None:
        rerun = Rerun.objects.get()
        for attempt in range(int(str(rerun.plan.get("attempts", 1)))):
            live.attempted(rerun, attempt, same=same, outcome=outcome)

    monkeypatch.setattr("harnesslab.cli.reruns.time.sleep", ended)


def test_it_queues_attempts_and_says_so() -> None:
    rollout = live.rerunnable()
    result = run("rerun", rollout.pk, "--attempts", 2, "--seed", "drawn", "--from-step", 1, "--temperature", 0.5)
    assert result.exit_code == 0, result.output
    assert "2 attempts queued" in result.output
    plan = Rerun.objects.get().plan
    assert (plan["from_step"], plan["seed"], plan["temperature"]) == (1, "drawn", 0.5)


def test_switches_are_named_by_boundary() -> None:
    rollout = live.rerunnable()
    result = run("rerun", rollout.pk, "--mode", "hybrid", "--switch", "model=live", "--switch", "tool:run=fail")
    assert result.exit_code == 0, result.output
    assert Rerun.objects.get().plan["switches"] == {"model": "live", "tool:run": "fail"}
    wrong = run("rerun", rollout.pk, "--mode", "hybrid", "--switch", "model")
    assert wrong.exit_code == 1
    assert "no switch" in wrong.output


def test_waiting_ends_with_the_finding_and_0_also_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = live.rerunnable()
    worker(monkeypatch, same=False)
    result = run("rerun", rollout.pk, "--attempts", 2, "--wait")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].startswith("Never went as the parent, 0/2 (95 % CI 0–66 %), live")
    assert "attempt 1: queued" in result.output


def test_waiting_ends_with_1_where_nothing_could_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = live.rerunnable()
    worker(monkeypatch, same=None, outcome=Outcome.INFRA_ERROR)
    result = run("rerun", rollout.pk, "--wait")
    assert result.exit_code == 1
    assert "could not run" in result.output


def test_a_job_that_failed_before_its_rollout_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = live.rerunnable()

    def failed(_: float) -> None:
        Job.objects.update(state=JobState.FAILED, message="no sandbox can be made here")

    monkeypatch.setattr("harnesslab.cli.reruns.time.sleep", failed)
    result = run("rerun", rollout.pk, "--wait")
    assert result.exit_code == 1
    assert "no sandbox can be made here" in result.output


def test_json_is_the_read_model(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = live.rerunnable()
    worker(monkeypatch, same=True)
    result = run("rerun", rollout.pk, "--wait", "--json")
    assert json.loads(result.output)["same"]["k"] == 1


def test_what_can_not_run_is_refused() -> None:
    rollout = live.timed_out(1)
    result = run("rerun", rollout.pk, "--from-step", 2)
    assert result.exit_code == 1
    assert "nearest safe one" in result.output
    assert run("rerun", 999).exit_code == 1


def test_a_preview_asks_for_nothing() -> None:
    result = run("rerun", live.rerunnable().pk, "--preview", "--attempts", 3)
    assert "3 attempts: about 9 model calls" in result.output
    assert not Rerun.objects.exists()


def test_the_help_says_where_steps_begin() -> None:
    assert "Steps count from 0 here" in run("rerun", "--help").output


def test_engines_are_added_and_listed() -> None:
    assert "no engine is registered" in run("engines").output
    added = run(
        "engine-add", "Box", "--kind", "openai", "--address", "http://127.0.0.1:9", "--model", "m", "--api-key-env", "K"
    )
    assert added.exit_code == 0, added.output
    assert Engine.objects.get().options == {"api_key_env": "K"}
    assert "Box: openai, m, http://127.0.0.1:9; not asked yet" in run("engines").output
    assert json.loads(run("engines", "--json").output)[0]["name"] == "Box"
    refused = run("engine-add", "C", "--kind", "openai", "--address", "http://x", "--options", '{"api_key": "s"}')
    assert refused.exit_code == 1
