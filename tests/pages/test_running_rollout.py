"""The page of a rollout that still runs follows it: what is new is added at the end, and nothing else moves."""

from __future__ import annotations

import pytest
from django.test import Client

from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ToolCall
from tests.recordings import recording

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true"}


def test_new_events_are_added_at_the_end_and_the_ending_is_said(as_viewer: Client) -> None:
    recorder = Recorder(recording())
    recorder.builder.add(ToolCall(name="run", arguments={"command": "first"}, result="x"))
    recorder.flush()
    here = f"/rollouts/{recorder.rollout.pk}/"
    page = as_viewer.get(here).content.decode()
    assert f'hx-get="{here}running/?seen=1"' in page
    recorder.builder.add(ToolCall(name="run", arguments={"command": "second"}, result="x", step=1))
    recorder.flush()
    part = as_viewer.get(f"{here}running/?seen=1", headers=PART).content.decode()
    assert "second" in part
    assert "first" not in part
    assert f'hx-get="{here}running/?seen=2"' in part
    nothing = as_viewer.get(f"{here}running/?seen=2", headers=PART).content.decode()
    assert "hx-swap-oob" not in nothing
    recorder.finish(RolloutEnding(Outcome.SOLVED))
    ended = as_viewer.get(f"{here}running/?seen=2", headers=PART).content.decode()
    assert "It has ended" in ended
    assert "hx-trigger" not in ended.split("</p>")[0]


def test_a_list_that_does_not_show_its_end_is_told_how_far_it_is_and_gets_nothing_added(as_viewer: Client) -> None:
    recorder = Recorder(recording())
    for step in range(300):
        recorder.builder.add(ToolCall(name="run", arguments={"n": step}, result="x", step=step))
    recorder.flush()
    here = f"/rollouts/{recorder.rollout.pk}/"
    assert f'hx-get="{here}running/"' in as_viewer.get(here).content.decode()
    assert "hx-swap-oob" not in as_viewer.get(f"{here}running/", headers=PART).content.decode()
