"""Each dialect: what becomes of a request, and how answers and problems are said."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from harnesslab.core.running.ports import Failure, FailureKind
from harnesslab.core.trace.events import ModelCall, ToolRequest
from harnesslab.runtime.gateway.requests import problem_of
from tests.runtime.gateway.speaking import CALL, Said, client

HI = [{"role": "user", "content": "hi"}]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": HI},
    "responses": {"input": "hi"},
    "anthropic": {"messages": HI, "max_tokens": 5},
}


def post(dialect: str, body: dict[str, Any], said: Said | None = None) -> Any:
    with client(said) as asking:
        return asking.post(PATHS[dialect], {**BODIES[dialect], **body}), asking.said


def test_chat_is_passed_on_as_it_comes() -> None:
    tools = [{"type": "function", "function": {"name": "run", "parameters": {}}}]
    body = {"model": "x", "temperature": 0.2, "max_completion_tokens": 9, "tools": tools, "user": "u", "seed": None}
    answer, said = post("chat", body)
    (asked,) = said.asked
    assert (asked.messages, asked.tools) == (HI, tools)
    assert asked.settings == {"temperature": 0.2, "max_tokens": 9}
    assert asked.kept_back == {"user": "u"}
    message = answer.json["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("hello", "hm")
    assert message["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}
    assert message["tool_calls"][1] == {
        "id": "call_3_0_1",
        "type": "function",
        "function": {"name": "say", "arguments": '{"a":[1]}'},
    }
    assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
    assert answer.json["model"] == "x"
    assert answer.json["usage"]["prompt_tokens_details"] == {"cached_tokens": 5}


def test_a_streamed_chat_ends_with_usage_where_asked_and_done() -> None:
    answer, _ = post("chat", {"stream": True, "stream_options": {"include_usage": True}})
    *chunks, usage, done = answer.events
    assert done == "[DONE]"
    assert usage["usage"]["total_tokens"] == 27
    assert usage["choices"] == []
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "hello"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "tool_calls"
    bare, _ = post("chat", {"stream": True})
    assert all("usage" not in event for event in bare.events if event != "[DONE]")


def test_responses_become_chat_and_items_again() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "id": "i", "status": "completed", "content": "so"},
        {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}", "status": "completed"},
        {"type": "function_call", "call_id": "c2", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    ]
    schema = {"type": "json_schema", "name": "n", "schema": {}, "strict": True}
    body = {
        "instructions": "brief",
        "input": items,
        "tools": [{"type": "function", "name": "run", "parameters": {}, "strict": False}],
        "tool_choice": {"type": "function", "name": "run"},
        "max_output_tokens": 7,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": schema},
    }
    answer, said = post("responses", body)
    (asked,) = said.asked
    roles = [message["role"] for message in asked.messages]
    assert roles == ["system", "user", "assistant", "assistant", "tool", "tool"]
    assert asked.messages[2]["reasoning_content"] == "hm"
    assert [call["id"] for call in asked.messages[3]["tool_calls"]] == ["c1", "c2"]
    assert asked.messages[5] == {"role": "tool", "tool_call_id": "c2", "content": "two"}
    assert asked.settings["response_format"]["json_schema"] == {"name": "n", "schema": {}, "strict": True}
    assert asked.settings["tool_choice"]["function"] == {"name": "run"}
    assert (asked.settings["max_tokens"], asked.settings["reasoning_effort"]) == (7, "low")
    kinds = [item["type"] for item in answer.json["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call"]
    assert answer.json["output"][3]["call_id"] == "call_3_0_1"
    assert answer.json["usage"]["output_tokens_details"] == {"reasoning_tokens": 2}


def test_a_streamed_response_is_numbered_and_ends_with_the_whole() -> None:
    answer, _ = post("responses", {"stream": True})
    events = answer.events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert text == "hello"
    cut, _ = post("responses", {"stream": True}, Said(ModelCall(text="x", finish_reason="length")))
    assert cut.events[-1]["type"] == "response.incomplete"
    assert cut.events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_anthropic_becomes_chat_and_blocks_again() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "t1", "name": "run", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a"}],
                    "is_error": True,
                },
                {"type": "text", "text": "go on"},
            ],
        },
    ]
    body = {
        "system": [{"type": "text", "text": "brief"}],
        "messages": messages,
        "tools": [{"name": "run", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "stop_sequences": ["."],
    }
    answer, said = post("anthropic", body)
    (asked,) = said.asked
    assert [message["role"] for message in asked.messages] == ["system", "user", "assistant", "tool", "user"]
    assert asked.messages[2]["reasoning_content"] == "hm"
    assert asked.messages[2]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command":"ls"}'}
    assert asked.tools[0]["function"] == {"name": "run", "description": "d", "parameters": {"type": "object"}}
    assert asked.settings == {
        "max_tokens": 5,
        "stop": ["."],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    assert [block["type"] for block in answer.json["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.json["content"][2]["input"] == {"command": "ls"}
    assert answer.json["stop_reason"] == "tool_use"
    assert answer.json["usage"] == {
        "input_tokens": 15,
        "output_tokens": 7,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 0,
    }


def test_a_streamed_message_opens_and_closes_each_block() -> None:
    answer, _ = post("anthropic", {"stream": True})
    kinds = [event["type"] for event in answer.events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
    deltas = [event["delta"] for event in answer.events if event["type"] == "content_block_delta"]
    written = [delta["partial_json"] for delta in deltas if delta["type"] == "input_json_delta"]
    assert [json.loads(text) for text in written] == [{"command": "ls"}, {"a": [1]}]


def test_arguments_that_are_no_json_have_no_place_with_anthropic_and_are_kept_elsewhere() -> None:
    broken = msgspec.structs.replace(CALL, tool_calls=(ToolRequest("run", None, "{oops", "c"),))
    chat, _ = post("chat", {}, Said(broken))
    assert chat.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == "{oops"
    for stream in (False, True):
        answer, said = post("anthropic", {"stream": stream}, Said(broken))
        assert (answer.status, answer.json["error"]["type"]) == (502, "api_error")
        assert "no JSON object" in said.refusals[0]


@pytest.mark.parametrize(
    ("dialect", "body", "said"),
    [
        ("chat", {"n": 2}, "n 2"),
        ("chat", {"logprobs": True}, "logprobs"),
        ("chat", {"functions": []}, "functions"),
        ("chat", {"audio": {}}, "audio"),
        ("chat", {"messages": []}, "at least one message"),
        ("chat", {"messages": [{"role": "robot"}]}, "roles"),
        ("chat", {"messages": "x"}, "no list"),
        ("chat", {"stream": "yes"}, "neither true nor false"),
        ("responses", {"previous_response_id": "r"}, "previous_response_id"),
        ("responses", {"background": True}, "background"),
        ("responses", {"tools": [{"type": "web_search"}]}, "web_search"),
        ("responses", {"input": [{"type": "custom_tool_call"}]}, "custom_tool_call"),
        ("responses", {"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input_file"),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking"),
        ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "bash_20250124"),
        ("anthropic", {"mcp_servers": []}, "mcp_servers"),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "document"),
        ("anthropic", {"messages": [{"role": "tool", "content": ""}]}, "role"),
    ],
)
def test_what_can_not_be_passed_on_is_refused_in_one_sentence(dialect: str, body: dict[str, Any], said: str) -> None:
    answer, boundary = post(dialect, body)
    assert answer.status == 400
    assert said in answer.json["error"]["message"]
    assert (boundary.asked, len(boundary.refusals)) == ([], 1)
    assert answer.headers["x-should-retry"] == "false"


def test_tokens_are_not_counted() -> None:
    with client() as asking:
        answer = asking.post("/v1/messages/count_tokens", {"messages": HI})
    assert (answer.status, answer.json["type"]) == (400, "error")
    assert "counts no tokens" in answer.json["error"]["message"]


PROBLEMS = [
    (FailureKind.CONTEXT_EXCEEDED, 400, 400, "false"),
    (FailureKind.OVERLOADED, 503, 529, "true"),
    (FailureKind.UNREACHABLE, 502, 502, "true"),
    (FailureKind.TIMEOUT, 504, 504, "true"),
    (FailureKind.SERVER_ERROR, 500, 500, "true"),
    (FailureKind.REFUSED, 400, 400, "false"),
]


@pytest.mark.parametrize(("kind", "status", "anthropic", "again"), PROBLEMS)
def test_an_engines_failure_is_said_in_the_dialect(kind: FailureKind, status: int, anthropic: int, again: str) -> None:
    facts = {"prompt_tokens": 900, "context_limit": 512}
    said = Said(problem_of(Failure(kind, "too much", facts, 3.2)))
    for dialect in PATHS:
        answer, _ = post(dialect, {"stream": True}, said)
        assert answer.status == (anthropic if dialect == "anthropic" else status)
        assert (answer.headers["x-should-retry"], answer.headers["retry-after"]) == (again, "3")
        assert answer.json["error"]["message"].startswith("too much")
        assert answer.json["error"]["facts"] == facts
        if kind is FailureKind.CONTEXT_EXCEEDED:
            assert "prompt_tokens 900, context_limit 512" in answer.json["error"]["message"]
            assert dialect == "anthropic" or answer.json["error"]["code"] == "context_length_exceeded"


def test_usage_that_is_not_stated_is_not_made_up_where_the_dialect_lets_it() -> None:
    said = Said(ModelCall(text="x", usage=None))
    assert post("chat", {}, said)[0].json["usage"] is None
    assert post("responses", {}, said)[0].json["usage"] is None
    assert post("anthropic", {}, said)[0].json["usage"]["input_tokens"] == 0
