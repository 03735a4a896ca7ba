"""Events of a stored trace: windows of the list, one in full, and each payload by the name that its block gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from harnesslab.actions.rollouts.recorder import Recorder
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import NotFound
from harnesslab.core.trace import packing
from harnesslab.core.trace.events import ModelCall, ToolCall, Usage
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.rollouts import event_content
from harnesslab.queries.rollouts.event_content import part
from harnesslab.queries.rollouts.events import (
    event_detail,
    event_window,
    events_after,
    first_event_of_step,
    latest_events,
)
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader, preload
from tests.hostile import TEXTS
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def reader(**fields: Any) -> StoredTraceReader:
    return StoredTraceReader(store_recording(recording(**fields), None))


def with_tool(change: Any) -> StoredTraceReader:
    """Store a rollout with the first tool call changed."""
    made = recording()
    events = list(made.trace.events)
    place = next(index for index, event in enumerate(events) if isinstance(event, ToolCall))
    events[place] = structs.replace(events[place], **change)
    return StoredTraceReader(
        store_recording(replace(made, trace=Trace(tuple(events), made.trace.payloads, made.trace.digests)), None)
    )


def place_of(kind: str, found: StoredTraceReader, number: int = 0) -> int:
    return [index for index, other in enumerate(found.kinds) if other == kind][number]


@pytest.mark.parametrize("size", [1, 4, 120])
def test_windows_follow_each_other_without_a_gap_or_a_repeat(size: int) -> None:
    found = reader()
    total = found.rollout.events
    start: int | None = 0
    seen: list[int] = []
    while start is not None:
        window = event_window(found, start, size)
        seen += [row.index for row in window.rows]
        assert window.total == total
        start = window.after
    assert seen == list(range(total))


def test_a_step_opens_once_wherever_a_window_begins() -> None:
    found = reader()
    whole = event_window(found, 0).rows
    opened = [row.step for row in whole if row.opens_step]
    assert opened == sorted({row.step for row in whole})
    for start in range(found.rollout.events):
        assert event_window(found, start, 1).rows == [whole[start]]


@pytest.mark.parametrize(("start", "first", "count"), [(-5, 0, 3), (10**9, -1, 1)])
def test_a_window_begins_within_the_trace(start: int, first: int, count: int) -> None:
    found = reader()
    rows = event_window(found, start, 3).rows
    assert (rows[0].index, len(rows)) == (first % found.rollout.events, count)


def test_events_before_a_shown_one_end_there() -> None:
    found = reader()
    window = event_window(found, 2, 3, until=4)
    assert ([row.index for row in window.rows], window.before, window.after) == ([2, 3], 0, None)


def test_a_running_rollout_shows_what_it_has_so_far() -> None:
    recorder = Recorder(recording())
    assert latest_events(recorder.rollout.pk) == [] or latest_events(recorder.rollout.pk)[0].index == 0
    recorder.builder.model_call([{"role": "user", "content": "go"}], text="yes", usage=Usage(5, None))
    recorder.flush()
    rows = latest_events(recorder.rollout.pk, 1)
    assert [row.kind for row in rows] == ["model_call"]
    found = StoredTraceReader(type(recorder.rollout).objects.get(pk=recorder.rollout.pk))
    assert [row.index for row in events_after(found, rows[0].index).rows] == [rows[0].index]
    assert events_after(found, found.rollout.events).rows == []
    assert ("tokens", "5 in · ? out") in event_detail(found, rows[0].index).facts  # unknown is no 0


def test_a_step_is_found_by_its_model_call_and_one_that_is_not_there_by_its_number() -> None:
    found = reader()
    assert [found.kinds[first_event_of_step(found, step)] for step in range(3)] == ["model_call"] * 3
    with pytest.raises(NotFound, match="there is no step 9"):
        first_event_of_step(found, 8)


def test_a_call_says_how_its_input_changed_and_which_attempts_its_step_took() -> None:
    found = reader(retried=1)
    failed, again = place_of("model_call", found, 1), place_of("model_call", found, 2)
    detail = event_detail(found, again)
    assert detail.attempts == [failed, again]
    assert event_detail(found, place_of("model_call", found)).attempts == []
    assert detail.input_summary == "4 messages · 4 unchanged · 0 new"
    assert event_detail(found, place_of("model_call", found, 3)).input_summary == "6 messages · 4 unchanged · 2 new"
    assert [row.failed for row in event_window(found, failed, 1).rows] == [True]
    assert dict(detail.facts)["attempt"] == "2"
    assert detail.seal == found.seal(again).hex()


def test_a_long_payload_is_cut_and_comes_whole_by_its_name() -> None:
    long = "word " * event_content.PREVIEW
    found = reader(results={0: long}, user=long)
    for place in (place_of("tool_call", found), place_of("user_turn", found), place_of("model_call", found)):
        cut = [block for block in event_detail(found, place).blocks if block.cut]
        assert cut
        for block in cut:
            whole = part(found, place, block.part)
            assert (len(whole), whole[: len(block.text)]) == (block.size, block.text)


def test_long_arguments_of_each_call_of_an_answer_come_whole() -> None:
    long = ["echo " + letter * event_content.PREVIEW for letter in "ab"]
    found = reader(commands=long)
    for number, command in enumerate(long):
        place = place_of("model_call", found, number)
        (block,) = [each for each in event_detail(found, place).blocks if each.title == "calls run"]
        assert block.cut
        assert command in part(found, place, block.part)
        assert command in part(found, place, "tool_calls")


def test_half_characters_take_nothing_from_the_end_of_a_text() -> None:
    text = "\ud800" * event_content.PREVIEW + "end"
    found = reader(results={0: text})
    block = event_detail(found, place_of("tool_call", found)).blocks[1]
    assert (block.cut, block.size) == (True, 6 * event_content.PREVIEW + 3)
    assert part(found, place_of("tool_call", found), block.part) == text


def test_every_block_of_every_event_comes_whole_by_its_name() -> None:
    found = reader(retried=0)
    for index in range(found.rollout.events):
        for block in event_detail(found, index).blocks:
            assert isinstance(part(found, index, block.part), str)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nothing",
        "message:999",
        "message:x",
        "raw-message:",
        "raw-message:999999999",
        "test:0",
        "__class__",
        "__init__",
        "__struct_config__",
        "__doc__",
        "\x00",
        "event.__class__",
    ],
)
@pytest.mark.parametrize("kind", ["model_call", "tool_call", "verification"])
def test_a_payload_that_is_not_there_is_one_sentence(kind: str, name: str) -> None:
    found = reader()
    with pytest.raises(NotFound, match=r"the event has no|there is no payload"):
        part(found, place_of(kind, found), name)


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_comes_back_as_it_was_recorded(text: str) -> None:
    found = reader(results={0: text}, user=text, commands=[text])
    tool, user = place_of("tool_call", found), place_of("user_turn", found)
    assert part(found, tool, "result") == text
    assert part(found, user, "content") == text
    assert event_detail(found, tool).blocks
    assert "\n" not in event_window(found, tool, 1).rows[0].detail


def test_a_result_that_was_changed_for_the_model_is_shown_twice() -> None:
    empty = with_tool({"result": ""})
    blocks = event_detail(empty, place_of("tool_call", empty)).blocks
    assert [block.title for block in blocks] == ["arguments", "result, as the model saw it"]
    changed = with_tool({"seen": "less"})
    (_, produced, seen) = event_detail(changed, place_of("tool_call", changed)).blocks
    assert (produced.title, seen.title, seen.tone) == ("result as produced", "what the model saw", "clipped")


def test_a_request_is_put_together_with_all_of_its_messages() -> None:
    found = reader()
    place = place_of("model_call", found, 2)
    event = found.event(place)
    assert isinstance(event, ModelCall)
    body = event_content.request_body(found, place, event)
    assert (body["model"], body["temperature"], len(found.messages(place))) == ("m-1", 1.0, 6)
    assert part(found, place, "kept").count("── ") == 4
    assert part(found, place, "request").count('"role"') == 6
    assert "curl" in part(found, place, "curl")


def test_one_event_of_a_long_trace_is_read_in_the_same_queries(
    monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 400)
    short, long = (reader(commands=[f"command {n}" for n in range(count)], trial=count) for count in (3, 60))
    for found in (short, long):
        place = place_of("model_call", found, 2)
        fresh = StoredTraceReader(found.rollout)
        with django_assert_max_num_queries(12):
            event_detail(fresh, place)


def test_chunks_of_many_rollouts_are_read_in_three_queries(
    monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(packing, "CHUNK_BYTES", 400)
    readers = [reader(trial=trial, commands=[f"c {n}" for n in range(20)]) for trial in range(6)]
    fresh = [StoredTraceReader(each.rollout) for each in readers]
    wanted = [(each, 30) for each in fresh]
    with django_assert_max_num_queries(3):
        preload(wanted)
        events = [each.event(30) for each in fresh]
    assert events == [each.event(30) for each in readers]
