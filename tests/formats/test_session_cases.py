"""Sessions of public bug reports' kinds, with the values that are right for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.answers import COPIED, spent
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.lineage import COPIED_FROM, LEFT
from harnesslab.formats.registry import recognise, recordings
from tests.formats.building import model_calls, sent, tool_calls

CASES = Path(__file__).parents[2].parent / "shared" / "cases"
_SHOWN = ("ALPHA", "BETA", "GAMMA")
pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the real traces are not beside this checkout")


def read(name: str) -> list[Recording]:
    return [each for unit in discover([CASES / name]) for each in recordings(recognise(unit), Report())]


def tokens(*found: Recording) -> tuple[int, int, int]:
    usage = [spent(call) for recording in found for call in model_calls(recording)]
    return tuple(sum(getattr(each, key) or 0 for each in usage) for key in ("input", "output", "cache_read"))  # type: ignore[return-value]


@pytest.mark.parametrize("path", ["b01_codex_fork", "b01_codex_fork/rollout-fork.jsonl"])
def test_a_fork_counts_its_own_turn_alone(path: str) -> None:
    found = read(path)
    assert tokens(found[0]) == (40, 10, 30)
    copied = [call for call in model_calls(found[0]) if call.extra.get(COPIED)]
    assert {call.extra[COPIED_FROM] for call in copied} == {"0199aaaa-0000-7000-8000-0000000000a1"}
    assert len(found) == 1 or tokens(*found)[:2] == (120, 30)


def test_running_totals_beside_a_count_add_nothing() -> None:
    assert tokens(*read("b03_codex_token_usage_record.jsonl")) == (35_490, 40, 34_000)


def test_a_rewound_branch_is_in_no_input_after_it() -> None:
    (recording,) = read("b05_claude_rewind.jsonl")
    calls = model_calls(recording)
    told = [text_of(message["content"]) for message in sent(recording, calls[-1])]
    assert told == ["read the plan", "Read.", "write it in Python"]
    assert [call.text for call in calls if LEFT in call.extra] == ["ABANDONED Perl it is."]


def test_calls_with_one_id_have_their_own_results() -> None:
    (recording,) = read("b07_claude_constant_tool_id.jsonl")
    found = [(call.arguments, call.result) for call in tool_calls(recording)]
    assert found == [
        ({"command": f"cat {name}"}, shown) for name, shown in zip("abc", ("ALPHA", "BETA", "GAMMA"), strict=True)
    ]


def test_a_block_written_twice_is_read_once() -> None:
    (recording,) = read("b24_claude_snapshot_repeated.jsonl")
    assert [call.text for call in model_calls(recording)] == ["The answer is 4.", None, "Done."]
    assert [(call.name, call.result) for call in tool_calls(recording)] == [("Bash", "a b")]
    assert tokens(recording)[:2] == (350, 25)
