"""Forks that repeat their parent, turns that are rolled back, calls that share an id, sub-agents' own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harnesslab.core.running.rollout import Recording
from harnesslab.core.trace.answers import COPIED, spent
from harnesslab.core.trace.events import Usage
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.discovery import discover
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.lineage import COPIED_FROM, LEFT, SPAWNED_BY, SUBAGENT
from harnesslab.formats.registry import recognise
from harnesslab.formats.registry import recordings as recordings_of
from tests.formats.building import lines_unit, model_calls, only, sent, tool_calls, user_turns

NAME = "codex"
PARENT, FORK = "0199cccc-0000-7000-8000-0000000000a1", "0199dddd-0000-7000-8000-0000000000b2"


def row(kind: str, at: float, **payload: Any) -> dict[str, Any]:
    minute, second = divmod(at, 60)
    return {"timestamp": f"2026-02-01T08:{int(minute):02d}:{second:06.3f}Z", "type": kind, "payload": payload}


def meta(name: str, at: float = 0, **more: Any) -> dict[str, Any]:
    return row("session_meta", at, id=name, cwd="/p", cli_version="0.146.1", **more)


def turn(ask: str, answer: str, counts: tuple[int, int], at: float, step: float = 1, **more: Any) -> list[Any]:
    used = {"input_tokens": counts[0], "cached_input_tokens": counts[1], "output_tokens": 5}
    info = {"last_token_usage": used, "total_token_usage": {**used, "output_tokens": int(at * 1000) + 5}}
    return [
        row("turn_context", at, model="m", **more),
        row("response_item", at + step, type="message", role="user", content=[{"type": "input_text", "text": ask}]),
        row("response_item", at + 2 * step, type="message", role="assistant", content=answered(answer)),
        row("event_msg", at + 3 * step, type="token_count", info=info, rate_limits={"left": at}),
    ]


def answered(text: str) -> list[dict[str, Any]]:
    return [{"type": "output_text", "text": text}]


def again(rows: list[dict[str, Any]], at: float, step: float = 0) -> list[dict[str, Any]]:
    """The same rows under the time of a fork."""
    return [
        {**each, "timestamp": row("", at + step * place)["timestamp"], "payload": dict(each["payload"])}
        for place, each in enumerate(rows)
    ]


def own(recording: Recording) -> list[Usage]:
    return [spent(call) for call in model_calls(recording)]


HISTORY = [*turn("count", "4", (40, 0), 10), *turn("folders", "2", (50, 30), 20)]
OWN = turn("largest", "b", (60, 40), 300)


def folder(place: Path, **files: list[dict[str, Any]]) -> dict[str, Recording]:
    for name, rows in files.items():
        place.joinpath(f"rollout-{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {each.case: each for unit in discover([place]) for each in recordings_of(recognise(unit), Report())}


def fork(*rows: dict[str, Any], step: float = 0) -> list[dict[str, Any]]:
    copied = again([meta(PARENT), *HISTORY], 200, step)
    return [meta(FORK, 200, forked_from_id=PARENT), *copied, *rows]


def check(forked: Recording) -> None:
    """The fork's own usage is its last turn's; what it copied is marked, linked and in its input."""
    calls = model_calls(forked)
    assert own(forked)[2] == Usage(input=60, output=5, cache_read=40)
    assert [spent(call).input for call in calls] == [None, None, 60]
    assert [call.extra.get(COPIED_FROM) for call in calls] == [PARENT, PARENT, None]
    assert [COPIED in asked.extra for asked in user_turns(forked)] == [True, True, False]
    assert len(sent(forked, calls[2])) == 5
    assert forked.facts["copied_from"] == [PARENT]


def test_a_fork_beside_its_parent_repeats_it_as_far_as_both_agree(tmp_path: Path) -> None:
    more = turn("largest", "c", (70, 0), 100)
    # every line at one pace, so that only the parent's file shows where the copy ends; the parent went on as well
    found = folder(tmp_path, fork=fork(*again(OWN, 209, 1), step=1), parent=[meta(PARENT), *HISTORY, *more])
    check(found[FORK])
    assert [spent(call).input for call in model_calls(found[PARENT])] == [40, 50, 70]


def test_a_fork_alone_is_parted_where_its_first_turn_comes_later() -> None:
    check(only(lines_unit(fork(*OWN)), NAME))
    later = turn("smallest", "d", (80, 40), 900)
    assert [each.input for each in own(only(lines_unit(fork(*OWN, *later)), NAME))] == [None, None, 60, 80]


def test_a_copy_that_keeps_its_times_is_older_than_the_fork() -> None:
    check(only(lines_unit([meta(FORK, 200, forked_from_id=PARENT), *HISTORY, *again(OWN, 201, 1)]), NAME))


def test_a_fork_alone_is_parted_by_turn_ids_that_hold_their_time() -> None:
    rows = [{**each, "payload": dict(each["payload"])} for each in fork(*again(OWN, 200))]
    contexts = [each["payload"] for each in rows if each["type"] == "turn_context"]
    for context, turn_id in zip(contexts, (f"0199cccc-0000-7000-8000-{n:012d}" for n in (5, 6)), strict=False):
        context["turn_id"] = turn_id
    contexts[2]["turn_id"] = "0199dddd-0001-7000-8000-000000000001"
    check(only(lines_unit(rows), NAME))


def test_where_nothing_shows_where_a_copy_ends_it_is_said() -> None:
    report = Report()
    check(only(lines_unit(fork(*again(OWN, 209, 1), step=1)), NAME, report))
    assert [FORK in remark.where for remark in report.remarks] == [True]


def test_a_fork_that_copied_nothing_costs_what_it_says() -> None:
    rows = [meta(FORK, 200, forked_from_id=PARENT), *OWN]
    recording = only(lines_unit(rows), NAME)
    assert [each.input for each in own(recording)] == [60]
    assert recording.trace.events[0].extra[COPIED_FROM] == PARENT


def test_turns_that_are_rolled_back_are_kept_and_marked_and_in_no_later_input() -> None:
    rows = [meta(PARENT), *HISTORY, row("event_msg", 60, type="thread_rolled_back", num_turns=1), *OWN]
    recording = only(lines_unit(rows), NAME)
    calls = model_calls(recording)
    told = [text_of(message["content"]) for message in sent(recording, calls[2])]
    assert told == ["count", "4", "largest"]
    assert [LEFT in call.extra for call in calls] == [False, True, False]
    assert [LEFT in asked.extra for asked in user_turns(recording)] == [False, True, False]
    assert [each.input for each in own(recording)] == [40, 50, 60]


def test_calls_with_one_id_keep_their_own_results() -> None:
    def called(name: str) -> dict[str, Any]:
        return row("response_item", 2, type="function_call", call_id="same", name="shell", arguments=f'"{name}"')

    def ended(code: int) -> dict[str, Any]:
        return row("event_msg", 3, type="exec_command_end", call_id="same", aggregated_output=f"{code}", exit_code=code)

    shown = [row("response_item", 4, type="function_call_output", call_id="same", output=text) for text in "abc"]
    rows = [meta(PARENT), called("x"), called("y"), ended(1), ended(2), *shown[:2], called("z"), ended(3), shown[2]]
    found = [(call.raw, call.result, call.seen, call.exit_code) for call in tool_calls(only(lines_unit(rows), NAME))]
    assert found == [('"x"', "1", "a", 1), ('"y"', "2", "b", 2), ('"z"', "3", "c", 3)]


def test_the_file_of_a_sub_agent_and_the_call_that_began_it_name_each_other(tmp_path: Path) -> None:
    begin = row("response_item", 2, type="function_call", call_id="c1", name="spawn_agent", arguments="{}")
    begun = row("response_item", 3, type="function_call_output", call_id="c1", output=json.dumps({"agent_id": FORK}))
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    found = folder(tmp_path, main=[meta(PARENT), *HISTORY, begin, begun], inner=[meta(FORK, source=source), *OWN])
    (call,) = tool_calls(found[PARENT])
    assert call.extra[SUBAGENT] == {"agent": FORK, "file": "rollout-inner.jsonl"}
    assert found[PARENT].facts["subagents"] == {"in_totals": False, "files": ["rollout-inner.jsonl"]}
    linked = {"session": PARENT, "call": "c1", "file": "rollout-main.jsonl", "line": 11}
    assert found[FORK].trace.events[0].extra[SPAWNED_BY] == linked


def test_who_wrote_a_turn_is_stated() -> None:
    assert [asked.extra["provenance"] for asked in user_turns(only(lines_unit([meta(PARENT), *OWN]), NAME))] == [
        "person"
    ]
