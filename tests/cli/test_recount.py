"""`harnesslab recount`, as a person types it."""

from __future__ import annotations

import pytest
from click.testing import Result

from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.store.models import Rollout
from tests.cli.commands import run
from tests.recordings import recording, served

pytestmark = pytest.mark.django_db


def recount(*arguments: object) -> Result:
    return run("recount", *arguments)


@pytest.fixture
def old() -> list[int]:
    rows = [store_recording(served(recording(trial=trial)), None).pk for trial in range(2)]
    rows.append(store_recording(recording(trial=2), None).pk)
    Rollout.objects.filter(pk__in=rows[:2]).update(input_tokens=303, output_tokens=30)
    Rollout.objects.update(counted_by=1)
    return rows


def test_all_are_brought_to_the_current_version_and_what_changed_is_said(old: list[int]) -> None:
    assert f"3 rollouts counted by an older version than {VERSION}" in recount().output
    said = recount("--all")
    assert said.exit_code == 0, said.output
    assert said.output.splitlines() == [
        f"rollout {old[0]}: input_tokens 303 → 102, output_tokens 30 → 10",
        f"rollout {old[1]}: input_tokens 303 → 102, output_tokens 30 → 10",
        f"3 counted by version {VERSION}, 2 with other numbers",
    ]
    assert recount("--all").output == f"0 counted by version {VERSION}, 0 with other numbers\n"


def test_some_are_counted_by_id(old: list[int]) -> None:
    assert recount(old[1]).output.startswith(f"rollout {old[1]}: input_tokens 303 → 102")
    assert set(Rollout.objects.filter(counted_by=1).values_list("pk", flat=True)) == {old[0], old[2]}


def test_what_was_unknown_is_said_as_unknown(old: list[int]) -> None:
    Rollout.objects.filter(pk=old[2]).update(cached_tokens=None)
    assert "cached_tokens – → 150" in recount(old[2]).output


def test_what_can_not_be_counted_gets_a_line_and_fails(old: list[int]) -> None:
    running = Recorder(recording(trial=5)).rollout.pk
    said = recount(running, old[0])
    assert said.exit_code == 1
    assert f"rollout {running}: not counted: it still runs" in said.output
    assert "1 counted by version" in said.output
    missing = recount(99_999)
    assert (missing.exit_code, "there is no rollout 99999" in missing.output) == (1, True)
    assert recount("--all", old[0]).exit_code == 2
