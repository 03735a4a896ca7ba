"""A loop harness that floods, stays deaf or sends what no record can hold ends itself, and its worker goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harnesslab.core.running.cases import SimulatedUser
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import UserTurn
from harnesslab.runtime.driver import conversation, episode
from tests.runtime.driver.rig import HEAD, Rig, case, model


def test_a_harness_that_reads_no_answer_runs_out_of_time(tmp_path: Path) -> None:
    code = 'import os, time\nfor _ in range(20000):\n    os.write(1, b\'{"type": "clock"}\\n\')\ntime.sleep(60)\n'
    began = time.monotonic()
    with model("unused") as served:
        result = Rig(tmp_path, code, case=case(wall=3.0)).go(served).done.result
    assert result.outcome is Outcome.TIMEOUT
    assert time.monotonic() - began < 20


def test_a_harness_that_floods_its_record_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode, "MOST_EVENTS", 100)
    with model("unused") as served:
        rollout = Rig(tmp_path, HEAD + 'while True:\n    episode.action("x")\n').go(served)
    assert (rollout.done.result.outcome, rollout.done.result.origin) == (Outcome.CRASH, "harness")
    assert "100 events" in rollout.done.result.why
    assert len(rollout.trace.events) < 110


def test_all_messages_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MOST_BYTES", 1 << 20)
    code = HEAD + 'while True:\n    episode.action("x", detail="y" * 100_000)\n'
    with model("unused") as served:
        result = Rig(tmp_path, code).go(served).done.result
    assert (result.outcome, result.origin) == (Outcome.CRASH, "harness")
    assert "1 MiB" in result.why


@pytest.mark.parametrize("depth", [300, 900])
@pytest.mark.parametrize(
    "message",
    [
        '{"type": "action", "name": "x", "detail": DEEP}',
        '{"type": "tool", "name": "run", "arguments": DEEP}',
        '{"type": "model", "messages": [{"role": "user", "content": DEEP}]}',
    ],
)
def test_what_is_nested_too_deeply_is_a_crash_of_the_harness(tmp_path: Path, message: str, depth: int) -> None:
    line = message.replace("DEEP", "[" * depth + "]" * depth)
    with model("x") as served:
        result = Rig(tmp_path, HEAD + f"import os\nos.write(1, {line!r}.encode() + b'\\n')\nepisode.end()\n").go(served)
    assert (result.done.result.outcome, result.done.result.origin) == (Outcome.CRASH, "harness")


def test_an_agent_named_as_the_user_takes_none_of_the_users_turns(tmp_path: Path) -> None:
    code = HEAD + (
        'episode.model([{"role": "user", "content": "q"}], agent="user")\nepisode.user("what?")\nepisode.end()\n'
    )
    with model("x") as served:
        rollout = Rig(tmp_path, code, case=case(user=SimulatedUser(replies=("blue",)))).go(served)
    assert [turn.content for turn in rollout.of(UserTurn)] == ["do it", "blue"]
