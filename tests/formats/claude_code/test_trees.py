"""Sessions whose lines are a tree: rewinds, forks, compactions that keep a tail, repeated ids, sub-agents' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.answers import COPIED, spent
from harnesslab.core.trace.events import ModelCall, RolloutStarted
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.lineage import COPIED_FROM, LEFT, SPAWNED_BY, SUBAGENT
from harnesslab.formats.registry import recognise
from harnesslab.formats.registry import recordings as recordings_of
from tests.formats.building import actions, lines_unit, model_calls, only, sent, tool_calls, user_turns

NAME = "claude-code"


def row(uuid: str, parent: str | None, second: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": "one",
        "version": "2.1.1",
        "timestamp": f"2026-03-01T09:00:{second:02d}.000Z",
        **more,
    }


def asked(uuid: str, parent: str | None, content: Any, second: int = 0, **more: Any) -> dict[str, Any]:
    return row(uuid, parent, second, type="user", message={"role": "user", "content": content}, **more)


def reply(
    uuid: str, parent: str | None, *blocks: Any, name: str = "", counts: tuple[int, int] = (10, 5), **more: Any
) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    usage = {"input_tokens": counts[0], "output_tokens": counts[1]}
    stop = more.pop("stop", "end_turn")
    message = {"id": name or f"m-{uuid}", "role": "assistant", "model": "m", "content": content, "stop_reason": stop}
    return row(uuid, parent, type="assistant", message={**message, "usage": usage}, **more)


def use(command: str, call_id: str = "same") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def results(uuid: str, parent: str | None, *shown: str, call_id: str = "same", **more: Any) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": text} for text in shown]
    return asked(uuid, parent, blocks, **more)


def said(recording: Recording, call: ModelCall) -> list[str]:
    """The texts of a call's input, in order; a result is its content, a tool's use its command."""
    found: list[str] = []
    for message in sent(recording, call):
        content = message["content"]
        for block in [content] if isinstance(content, str) else content:
            if isinstance(block, str):
                found.append(block)
            else:
                found.append(block.get("text") or block.get("content") or block["input"]["command"])
    return found


def folder(place: Path, **files: list[dict[str, Any]]) -> dict[str, Recording]:
    """Write files and read the folder that they lie in: recordings by case."""
    for name, rows in files.items():
        place.joinpath(f"{name.replace('_', '-')}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    units = discover([place])
    return {each.case: each for unit in units for each in recordings_of(recognise(unit), Report())}


def test_a_rewound_branch_is_kept_and_marked_and_in_no_later_input() -> None:
    rows = [asked("a", None, "plan"), reply("b", "a", "Planned."), asked("c", "b", "in Perl"), reply("d", "c", "Perl.")]
    rows += [asked("e", "b", "in Python"), reply("f", "e", "Python."), asked("g", "f", "test it")]
    recording = only(lines_unit([*rows, reply("h", "g", "Tested.")]), NAME)
    calls = model_calls(recording)
    assert said(recording, calls[2]) == ["plan", "Planned.", "in Python"]
    assert said(recording, calls[3]) == ["plan", "Planned.", "in Python", "Python.", "test it"]
    assert said(recording, calls[1]) == ["plan", "Planned.", "in Perl"]
    assert [LEFT in event.extra for event in calls] == [False, True, False, False]
    assert [LEFT in turn.extra for turn in user_turns(recording)] == [False, True, False, False]
    assert sum(spent(call).input or 0 for call in calls) == 40


def test_a_session_that_goes_back_to_a_branch_it_left_goes_on_with_that() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1"), asked("c", "b", "y"), reply("d", "c", "2")]
    rows += [asked("e", "b", "z"), reply("f", "e", "3"), asked("g", "d", "w"), reply("h", "g", "4")]
    recording = only(lines_unit(rows), NAME)
    calls = model_calls(recording)
    assert said(recording, calls[3]) == ["x", "1", "y", "2", "w"]
    assert [LEFT in call.extra for call in calls] == [False, False, True, False]


def test_a_session_may_be_rewound_to_its_first_prompt() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1"), asked("c", None, "y"), reply("d", "c", "2")]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[1]) == ["y"]
    assert LEFT in user_turns(recording)[0].extra


def test_calls_of_one_reply_that_run_at_once_are_no_branches() -> None:
    rows = [
        asked("a", None, "go"),
        reply("b", "a", use("one", "t1"), name="m1", requestId="r1"),
        reply("c", "b", use("two", "t2"), name="m1", requestId="r1"),
        results("d", "b", "ONE", call_id="t1"),
        results("e", "c", "TWO", call_id="t2"),
        reply("f", "d", "Done."),
    ]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[1]) == ["go", "one", "two", "ONE", "TWO"]
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_a_reminder_beside_the_path_is_no_left_branch() -> None:
    rows = [asked("a", None, "go"), asked("m", "a", "reminder", isMeta=True), reply("b", "a", "Done.")]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[0]) == ["go", "reminder"]
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_reminders_among_results_that_come_at_once_leave_all_of_them_in_the_input() -> None:
    rows = [asked("a", None, "go"), reply("b", "a", use("one", "t1"), use("two", "t2"))]
    rows += [asked("m", "b", "reminder", isMeta=True), results("c", "b", "ONE", call_id="t1")]
    rows += [asked("n", "c", "another", isMeta=True), results("d", "b", "TWO", call_id="t2"), reply("e", "c", "Done.")]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[1]) == ["go", "one", "two", "reminder", "ONE", "another", "TWO"]
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_reminders_for_a_prompt_that_was_left_are_left_with_it() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1"), asked("m", "b", "reminder", isMeta=True)]
    rows += [asked("c", "m", "y"), reply("d", "c", "2"), asked("e", "b", "z"), reply("f", "e", "3")]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[2]) == ["x", "1", "z"]
    assert [LEFT in action.extra for action in actions(recording)] == [True]


def test_calls_with_one_id_are_paired_by_position() -> None:
    rows = [asked("a", None, "go"), reply("b", "a", use("cat x"), use("cat y")), results("c", "b", "X", "Y")]
    rows += [reply("d", "c", use("cat z")), results("e", "d", "Z"), reply("f", "e", "Done.")]
    found = [(call.arguments, call.result) for call in tool_calls(only(lines_unit(rows), NAME))]
    assert found == [({"command": "cat x"}, "X"), ({"command": "cat y"}, "Y"), ({"command": "cat z"}, "Z")]


def test_an_unanswered_call_takes_no_later_result_with_its_id() -> None:
    rows = [asked("a", None, "go"), reply("b", "a", use("hangs")), asked("c", "b", "again")]
    rows += [reply("d", "c", use("works")), results("e", "d", "W"), reply("f", "e", "Done.")]
    found = {call.arguments["command"]: call.result for call in tool_calls(only(lines_unit(rows), NAME))}  # type: ignore[index, call-overload]
    assert found == {"works": "W", "hangs": None}


def test_a_block_that_is_written_again_as_it_grows_is_one() -> None:
    rows = [asked("a", None, "go"), reply("b", "a", "The ans", name="x", stop=None, counts=(100, 1))]
    rows += [reply("c", "a", "The answer", name="x", counts=(100, 10)), asked("d", "c", "run")]
    rows += [reply("e", "d", use("ls", "t1"), name="y", stop=None, counts=(120, 1))]
    rows += [reply("f", "d", use("ls", "t1"), name="y", counts=(120, 12)), results("g", "f", "s", call_id="t1")]
    recording = only(lines_unit([*rows, reply("h", "g", "Done.", counts=(130, 3))]), NAME)
    calls = model_calls(recording)
    assert [call.text for call in calls] == ["The answer", None, "Done."]
    assert [len(call.tool_calls) for call in calls] == [0, 1, 0]
    assert (sum(spent(call).input or 0 for call in calls), sum(spent(call).output or 0 for call in calls)) == (350, 25)
    assert len(tool_calls(recording)) == 1
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_replies_with_one_message_id_are_told_apart() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "same", name="chat"), asked("c", "b", "y")]
    rows += [reply("d", "c", "same", name="chat"), asked("e", "d", "z"), reply("f", "e", "more", name="chat")]
    assert [call.text for call in model_calls(only(lines_unit(rows), NAME))] == ["same", "same", "more"]


def test_a_compaction_keeps_its_preserved_tail() -> None:
    kept = {"headUuid": "c", "anchorUuid": "s", "tailUuid": "d"}
    rows = [asked("a", None, "old"), reply("b", "a", "1"), asked("c", "b", "kept"), reply("d", "c", "2")]
    rows += [row("k", None, type="system", subtype="compact_boundary", logicalParentUuid="d")]
    rows[-1]["compactMetadata"] = {"preservedSegment": kept}
    rows += [asked("s", "k", "summary", isCompactSummary=True), asked("e", "d", "next"), reply("f", "e", "3")]
    recording = only(lines_unit(rows), NAME)
    assert said(recording, model_calls(recording)[2]) == ["summary", "kept", "2", "next"]
    assert not any(LEFT in event.extra for event in recording.trace.events)


def test_a_session_may_be_rewound_to_before_a_compaction() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1"), asked("c", "b", "y"), reply("d", "c", "2")]
    rows += [row("k", None, type="system", subtype="compact_boundary", logicalParentUuid="d")]
    rows += [asked("s", "k", "summary", isCompactSummary=True), asked("e", "s", "z"), reply("f", "e", "3")]
    recording = only(lines_unit([*rows, asked("g", "b", "w"), reply("h", "g", "4")]), NAME)
    calls = model_calls(recording)
    assert said(recording, calls[2]) == ["summary", "z"]
    assert said(recording, calls[3]) == ["x", "1", "w"]
    assert [action.name for action in actions(recording) if LEFT in action.extra] == [
        "compact boundary",
        "compact summary",
    ]


def test_a_line_that_is_written_twice_is_read_once_and_said() -> None:
    report = Report()
    rows = [asked("a", None, "x"), asked("a", None, "x"), reply("b", "a", "1")]
    recording = only(lines_unit(rows), NAME, report)
    assert len(user_turns(recording)) == 1
    assert [remark.where for remark in report.remarks] == ["line 2"]


def test_lines_that_say_they_are_forked_are_copied_and_cost_nothing() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1")]
    for each in rows:
        each |= {"sessionId": "two", "forkedFrom": {"sessionId": "one", "messageUuid": each["uuid"]}}
    rows += [asked("c", "b", "y", sessionId="two"), reply("d", "c", "2", sessionId="two", counts=(7, 3))]
    recording = only(lines_unit(rows), NAME)
    first, second = model_calls(recording)
    assert (first.extra[COPIED], first.extra[COPIED_FROM]) == (True, "one")
    assert COPIED not in second.extra
    assert [spent(call).input for call in (first, second)] == [None, 7]
    assert said(recording, second) == ["x", "1", "y"]


def test_a_resumed_file_counts_what_it_copied_from_the_file_beside_it_once(tmp_path: Path) -> None:
    first = [asked("a", None, "x"), reply("b", "a", "1")]
    again = [{**each, "sessionId": "two"} for each in first]
    again += [asked("c", "b", "y", 9, sessionId="two"), reply("d", "c", "2", second=9, sessionId="two", counts=(7, 3))]
    found = folder(tmp_path, one=first, two=again)
    assert [spent(call).input for call in model_calls(found["one"])] == [10]
    assert [spent(call).input for call in model_calls(found["two"])] == [None, 7]
    assert found["two"].facts["copied_from"] == ["one"]


def test_a_resumed_file_with_ids_of_its_own_for_lines_is_known_by_its_replies(tmp_path: Path) -> None:
    first = [asked("a", None, "x"), reply("b", "a", "1", requestId="r1")]
    again = [asked("p", None, "x", sessionId="two"), reply("q", "p", "1", name="m-b", requestId="r1", sessionId="two")]
    again += [asked("c", "q", "y", 9, sessionId="two"), reply("d", "c", "2", sessionId="two", counts=(7, 3))]
    found = folder(tmp_path, one=first, two=again)
    assert [[spent(call).input for call in model_calls(found[name])] for name in ("one", "two")] == [[10], [None, 7]]
    assert [COPIED in turn.extra for turn in user_turns(found["two"])] == [True, False]


def test_a_reply_that_its_own_session_copied_costs_nothing_again() -> None:
    rows = [asked("a", None, "x"), reply("b", "a", "1", name="m", requestId="r"), asked("c", "b", "x")]
    same = [*rows, reply("d", "c", "1", name="m", requestId="r"), asked("e", "d", "y"), reply("f", "e", "2")]
    other = [*rows, reply("d", "c", "another", name="m", requestId="r"), asked("e", "d", "y"), reply("f", "e", "2")]
    spends = [[spent(call).input for call in model_calls(only(lines_unit(each), NAME))] for each in (same, other)]
    assert spends == [[10, None, 10], [10, 10, 10]]


def test_of_two_files_that_go_on_from_one_beginning_the_first_to_go_on_is_no_copy(tmp_path: Path) -> None:
    def branch(name: str, second: int) -> list[dict[str, Any]]:
        began = [{**each, "sessionId": name} for each in (asked("a", None, "x"), reply("b", "a", "1"))]
        return [*began, asked(name, "b", "y", second, sessionId=name), reply(f"r{name}", name, "2", sessionId=name)]

    for place, (one, two) in {"times": (5, 4), "tie": (5, 5)}.items():
        (tmp_path / place).mkdir()
        found = folder(tmp_path / place, one=branch("one", one), two=branch("two", two))
        spends = [[spent(call).input for call in model_calls(found[name])] for name in ("one", "two")]
        assert sorted(spends, key=str) == [[10, 10], [None, 10]]


def test_a_session_that_goes_on_from_another_in_its_file_has_that_before_it(tmp_path: Path) -> None:
    first = [asked("a", None, "x"), reply("b", "a", "1")]
    both = [*first, asked("c", "b", "y", sessionId="two"), reply("d", "c", "2", sessionId="two", counts=(7, 3))]
    (tmp_path / "alone").mkdir()
    alone = folder(tmp_path / "alone", two=both)
    assert said(alone["two"], model_calls(alone["two"])[1]) == ["x", "1", "y"]
    assert [[spent(call).input for call in model_calls(each)] for each in alone.values()] == [[10], [None, 7]]
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "one.jsonl").write_text("\n".join(map(json.dumps, first)))
    (tmp_path / "beside" / "two.jsonl").write_text("\n".join(map(json.dumps, both)))
    found = [each for unit in discover([tmp_path / "beside"]) for each in recordings_of(recognise(unit), Report())]
    assert [[spent(call).input for call in model_calls(each)] for each in found] == [[10], [None], [None, 7]]


@pytest.mark.parametrize("is_named", [True, False])
def test_the_file_of_a_sub_agent_and_the_call_that_began_it_name_each_other(tmp_path: Path, is_named: bool) -> None:
    begin = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}}
    main = [asked("a", None, "x"), reply("b", "a", begin), results("c", "b", "seen", call_id="t1")]
    if is_named:
        main[-1]["toolUseResult"] = {"agentId": "a7", "content": "seen"}
    side: dict[str, Any] = {"isSidechain": True, **({"agentId": "a7"} if is_named else {})}
    inner = [asked("p", None, "look", **side), reply("q", "p", "seen", **side)]
    found = folder(tmp_path, one=[*main, reply("d", "c", "Done.")], agent_a7=inner)
    (call,) = tool_calls(found["one"])
    assert call.extra[SUBAGENT] == {"agent": "a7", "file": "agent-a7.jsonl"}
    assert found["one"].facts["subagents"] == {"in_totals": False, "files": ["agent-a7.jsonl"]}
    opening = found["agent-a7"].trace.events[0]
    assert isinstance(opening, RolloutStarted)
    line = 3 if is_named else 2
    assert opening.extra[SPAWNED_BY] == {"session": "one", "call": "t1", "file": "one.jsonl", "line": line}


def test_who_wrote_a_turn_is_stated() -> None:
    (turn,) = user_turns(only(lines_unit([asked("a", None, "x"), reply("b", "a", "1")]), NAME))
    assert turn.extra["provenance"] == "person"
