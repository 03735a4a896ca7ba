"""A tiny agent that speaks each dialect with nothing but the standard library: `tiny_agent.py DIALECT INSTRUCTION`.

It runs what the model's calls of the tool `run` say, and ends when an answer calls nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def ask(path: str, body: dict[str, Any]) -> Any:
    """Send a request; a stream is read to its end and returned as its events."""
    request = urllib.request.Request(path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        sys.stdout.write(f"refused {error.code} {error.read().decode()}\n")
        sys.exit(3)
    if not body.get("stream"):
        return json.loads(text)
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
    return [json.loads(line) for line in lines]


def run(arguments: str) -> str:
    """Run the command of a call."""
    done = subprocess.run(json.loads(arguments)["command"], shell=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def chat(instruction: str, stream: bool) -> None:
    """Speak chat completions."""
    tools = [{"type": "function", "function": {"name": "run", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": instruction}]
    while True:
        body = {"model": "tiny", "messages": messages, "tools": tools, "temperature": 0.5}
        if stream:
            message = joined(ask(address("chat/completions"), {**body, "stream": True}))
        else:
            message = ask(address("chat/completions"), body)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            result = run(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def joined(chunks: list[Any]) -> dict[str, Any]:
    """Put the pieces of a streamed message together."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for chunk in chunks:
        for choice in chunk["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                message.setdefault("tool_calls", []).append({key: call[key] for key in ("id", "type", "function")})
    return message


def responses(instruction: str, stream: bool) -> None:
    """Speak responses."""
    tools = [{"type": "function", "name": "run", "parameters": SCHEMA}]
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": instruction}]}]
    while True:
        body = {"model": "tiny", "instructions": "be brief", "input": items, "tools": tools, "store": False}
        answer = ask(address("responses"), {**body, "stream": stream})
        answer = answer[-1]["response"] if stream else answer
        items += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if not calls:
            return
        for call in calls:
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": run(call["arguments"])}
            items.append(output)


def anthropic(instruction: str, stream: bool) -> None:
    """Speak Anthropic's messages."""
    tools = [{"name": "run", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": instruction}]
    while True:
        body = {"model": "tiny", "system": "be brief", "messages": messages, "tools": tools, "max_tokens": 64}
        path = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        answer = ask(path, {**body, "stream": stream})
        content = blocks(answer) if stream else answer["content"]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": run(json.dumps(call["input"]))}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def blocks(events: list[Any]) -> list[Any]:
    """Put the blocks of a streamed message together."""
    found: list[Any] = []
    for event in events:
        if event["type"] == "content_block_start":
            found.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            found[-1]["text"] += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            found[-1]["input"] = json.loads(event["delta"]["partial_json"])
    return found


def address(path: str) -> str:
    """Return an address of the gateway."""
    return f"{os.environ['OPENAI_BASE_URL']}/{path}"


def main() -> None:
    """Speak the dialect that the first argument names, streamed where it ends in `+`."""
    spoken = {"chat": chat, "responses": responses, "anthropic": anthropic}[sys.argv[1].rstrip("+")]
    spoken(sys.argv[2], sys.argv[1].endswith("+"))
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
