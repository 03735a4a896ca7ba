"""pi and droid sessions whose entries are a tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.answers import COPIED, spent
from harnesslab.core.trace.events import ModelCall
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.lineage import COPIED_FROM, LEFT
from harnesslab.formats.registry import recognise
from harnesslab.formats.registry import recordings as recordings_of
from tests.formats.building import lines_unit, model_calls, only, sent, tool_calls, user_turns

NAME = "coding-session"


def header(name: str = "p1", minute: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": name, "timestamp": stamp(minute), "cwd": "/x", **more}


def stamp(minute: int) -> str:
    return f"2026-04-01T07:{minute:02d}:00.000Z"


def entry(name: str, parent: str | None, minute: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": name, "parentId": parent, "timestamp": stamp(minute), **more}


def asked(name: str, parent: str | None, text: str, minute: int = 1) -> dict[str, Any]:
    return entry(name, parent, minute, message={"role": "user", "content": [{"type": "text", "text": text}]})


def reply(name: str, parent: str | None, *blocks: Any, minute: int = 1) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    usage = {"input": 8, "output": 2, "cacheRead": 0, "cacheWrite": 0}
    return entry(name, parent, minute, message={"role": "assistant", "content": content, "model": "m", "usage": usage})


def told(recording: Recording, call: ModelCall) -> list[str]:
    return [text_of(message["content"]) for message in sent(recording, call)]


def test_a_branch_that_was_left_is_kept_and_marked_and_in_no_later_input() -> None:
    rows = [header(), asked("a", None, "x"), reply("b", "a", "1"), asked("c", "b", "y"), reply("d", "c", "2")]
    rows += [entry("s", "b", type="branch_summary", fromId="d", summary="tried y"), asked("e", "s", "z")]
    recording = only(lines_unit([*rows, reply("f", "e", "3")]), NAME)
    calls = model_calls(recording)
    assert told(recording, calls[2]) == ["x", "1", "tried y", "z"]
    assert [LEFT in call.extra for call in calls] == [False, True, False]
    assert [LEFT in turn.extra for turn in user_turns(recording)] == [False, True, False]


def test_a_compaction_keeps_what_it_names() -> None:
    rows = [header(), asked("a", None, "old"), reply("b", "a", "1"), asked("c", "b", "kept"), reply("d", "c", "2")]
    rows += [entry("k", "d", type="compaction", summary="in short", firstKeptEntryId="c", tokensBefore=9)]
    recording = only(lines_unit([*rows, asked("e", "k", "next"), reply("f", "e", "3")]), NAME)
    assert told(recording, model_calls(recording)[2]) == ["in short", "kept", "2", "next"]


def test_results_that_name_one_reply_as_parent_are_no_branches() -> None:
    calls = [{"type": "toolCall", "id": "same", "name": "read", "arguments": {"path": path}} for path in "pq"]
    results = [
        entry(name, "b", message={"role": "toolResult", "toolCallId": "same", "toolName": "read", "content": shown})
        for name, shown in (("c", "P"), ("d", "Q"))
    ]
    rows = [header(), asked("a", None, "x"), reply("b", "a", *calls), *results, reply("e", "c", "done")]
    recording = only(lines_unit(rows), NAME)
    found = [(call.arguments, call.result) for call in tool_calls(recording)]
    assert found == [({"path": "p"}, "P"), ({"path": "q"}, "Q")]
    assert len(sent(recording, model_calls(recording)[1])) == 4
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_what_a_fork_copied_is_marked_and_costs_nothing(tmp_path: Path) -> None:
    parent = [header(), asked("a", None, "x"), reply("b", "a", "1"), asked("c", "b", "y")]
    forked = [header("p2", 9, parentSession="/s/first_0199aaaa-0000-7000-8000-000000000001.jsonl"), *parent[1:3]]
    forked += [asked("e", "b", "z", 10), reply("f", "e", "2", minute=10)]
    alone = only(lines_unit(forked), NAME)
    for name, rows in {"first_0199aaaa-0000-7000-8000-000000000001": parent, "second_p2": forked}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    units = discover([tmp_path])
    found = {each.case: each for unit in units for each in recordings_of(recognise(unit), Report())}
    for recording in (alone, found["p2"]):
        first, second = model_calls(recording)
        assert (COPIED in first.extra, COPIED in second.extra) == (True, False)
        assert [spent(call).input for call in (first, second)] == [None, 8]
        assert told(recording, second) == ["x", "1", "z"]
    assert model_calls(found["p2"])[0].extra[COPIED_FROM] == "p1"
    assert model_calls(alone)[0].extra[COPIED_FROM] == "0199aaaa-0000-7000-8000-000000000001"
    assert [spent(call).input for call in model_calls(found["p1"])] == [8]
