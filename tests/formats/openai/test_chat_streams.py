"""Streams are told apart and joined whole: in turn, as text over the wire, in a row's chunks, several answers each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.trace.events import Usage
from harnesslab.formats import registry
from tests.formats.building import file_unit, json_unit, lines_unit, model_calls, only, recordings

CASES = Path(__file__).parents[4] / "shared" / "cases"


def chunk(name: str, content: str = "", finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    delta: dict[str, Any] = {"content": content} if content else {}
    choices = [{"index": index, "delta": delta, "finish_reason": finish}]
    return {"id": name, "object": "chat.completion.chunk", "model": "m", "choices": choices, **more}


def used(asked: int, answered: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": asked, "completion_tokens": answered}}


def wire(rows: list[dict[str, Any]]) -> str:
    return "".join(f"data: {json.dumps(row)}\n\n" for row in rows) + "data: [DONE]\n\n"


INTERLEAVED = [
    chunk("a", "al"),
    chunk("b", "be"),
    chunk("a", "pha"),
    chunk("b", "ta"),
    chunk("a", finish="stop", **used(30, 2)),
    chunk("b", finish="stop"),
    {"id": "b", "object": "chat.completion.chunk", "choices": [], **used(31, 2)},
]
ONE = [chunk("a", "al"), chunk("a", "pha", "stop", **used(30, 2))]


def test_streams_that_run_at_once_are_told_apart() -> None:
    found = [model_calls(recording) for recording in recordings(lines_unit(INTERLEAVED), "chat-log")]
    assert [[(call.text, call.usage) for call in calls] for calls in found] == [
        [("alpha", Usage(30, 2))],
        [("beta", Usage(31, 2))],
    ]


def test_streams_that_share_one_id_are_told_apart_by_their_beginning() -> None:
    opening = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "al"}, "finish_reason": None}]}
    rows = [{**chunk("x"), **opening}, chunk("x", "pha", "stop"), {**chunk("x"), **opening}, chunk("x", "l", "stop")]
    found = recordings(lines_unit(rows), "chat-log")
    assert [model_calls(recording)[0].text for recording in found] == ["alpha", "all"]


def test_a_broken_stream_keeps_its_error_and_the_other_goes_on() -> None:
    rows = [chunk("a", "al"), chunk("b", "be"), {"error": {"message": "gone"}}, chunk("a", "pha", "stop")]
    first, second = (model_calls(recording)[0] for recording in recordings(lines_unit(rows), "chat-log"))
    assert (first.text, first.error) == ("alpha", None)
    assert (second.text, second.error) == ("be", "gone")


REQUEST = {"model": "m", "messages": [{"role": "user", "content": "say it"}]}


@pytest.mark.parametrize(
    "row",
    [
        {"request": REQUEST, "response": wire(ONE)},
        {"request": REQUEST, "response": {"status_code": 200, "body": wire(ONE)}},
        {"request": REQUEST, "response": None, "chunks": ONE},
        {"request": REQUEST, "chunks": ONE},
        {"request": REQUEST, "response": {"chunks": ONE}},
        {"request": REQUEST, "response": ONE},
        {"request": REQUEST, "chunks": [{key: value for key, value in row.items() if key != "object"} for row in ONE]},
    ],
)
def test_a_rows_streamed_answer_is_read_however_it_is_kept(row: dict[str, Any]) -> None:
    (call,) = model_calls(only(lines_unit([row]), "chat-log"))
    assert (call.text, call.finish_reason, call.usage, call.error) == ("alpha", "stop", Usage(30, 2), None)


def test_a_capture_of_the_wire_is_read() -> None:
    found = recordings(file_unit(wire(INTERLEAVED).encode(), "capture.sse"), "chat-log")
    assert [model_calls(recording)[0].text for recording in found] == ["alpha", "beta"]


def test_a_capture_of_a_responses_stream_is_read() -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "alpha"}]}]
    response = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": output}
    rows: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": "alpha"},
        {"type": "response.completed", "response": {**response, "usage": {"input_tokens": 5, "output_tokens": 1}}},
    ]
    text = "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    (call,) = model_calls(only(file_unit(text.encode(), "capture.txt"), "openai-responses"))
    assert (call.text, call.usage) == ("alpha", Usage(5, 1))
    row = {"request": {"model": "m", "input": "say it"}, "response": text}
    (call,) = model_calls(only(json_unit([row]), "openai-responses"))
    assert (call.text, call.usage) == ("alpha", Usage(5, 1))


def test_a_capture_of_another_stream_is_refused_by_its_name() -> None:
    rows: list[dict[str, Any]] = [{"type": "message_start", "message": {"role": "assistant"}}, {"type": "message_stop"}]
    text = "".join(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n" for row in rows)
    with pytest.raises(FormatRefused, match="Anthropic"):
        registry.recognise(file_unit(text.encode(), "capture.txt"))


def test_further_answers_of_one_request_are_kept() -> None:
    rows = [chunk("a", "one", "stop"), chunk("a", "two", "stop", index=1)]
    (call,) = model_calls(only(lines_unit(rows), "chat-log"))
    assert call.text == "one"
    others: Any = call.extra["other_answers"]
    assert [answer["message"]["content"] for answer in others] == ["two"]
    choices = [{"index": at, "message": {"role": "assistant", "content": said}} for at, said in enumerate("xyz")]
    (call,) = model_calls(only(lines_unit([{"request": REQUEST, "response": {"choices": choices}}]), "chat-log"))
    others = call.extra["other_answers"]
    assert (call.text, len(others)) == ("x", 2)


def test_a_name_that_every_chunk_repeats_is_said_once() -> None:
    def piece(name: str | None, arguments: str, call_id: str = "c") -> dict[str, Any]:
        call = {"index": 0, "id": call_id, "function": {"name": name, "arguments": arguments}}
        choices = [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]
        return {**chunk("a"), "choices": choices}

    (call,) = model_calls(only(lines_unit([piece("run", '{"a"'), piece("run", ": 1}"), chunk("a")]), "chat-log"))
    assert (call.tool_calls[0].name, call.tool_calls[0].arguments) == ("run", {"a": 1})
    (call,) = model_calls(only(lines_unit([piece("ru", ""), piece("n", "{}"), chunk("a")]), "chat-log"))
    assert call.tool_calls[0].name == "run"


@pytest.mark.skipif(not CASES.is_dir(), reason="the real traces are not beside this checkout")
def test_the_case_of_two_interleaved_streams() -> None:
    data = (CASES / "b08b_streams_interleaved.jsonl").read_bytes()
    found = [model_calls(recording)[0] for recording in recordings(file_unit(data, "b08b.jsonl"), "chat-log")]
    assert [(call.text, call.usage) for call in found] == [("alpha", Usage(30, 2)), ("beta", Usage(31, 2))]
