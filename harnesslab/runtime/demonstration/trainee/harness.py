"""A very small harness to train: it shows the files, asks for one shell command, and hands in what worked."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from harnesslab.policy import Episode, Stopped, connect

SYSTEM = 'Answer with one shell command as JSON: {"command": "..."}'
EXAMPLES = [json.loads(path.read_text()) for path in sorted(Path(__file__).parent.glob("examples/*.json"))]
SHOTS = 1
ACTION = {
    "type": "json_schema",
    "json_schema": {
        "name": "action",
        "schema": {
            "type": "object",
            "properties": {"command": {"type": "string", "maxLength": 60}},
            "required": ["command"],
            "additionalProperties": False,
        },
    },
}


def main() -> None:
    """Play one episode."""
    episode = connect()
    with contextlib.suppress(Stopped):
        solve(episode)


def solve(episode: Episode) -> None:
    """Ask for a command until one succeeds."""
    messages = [{"role": "system", "content": SYSTEM}]
    for example in chosen(episode.start["instruction"]):
        messages.append({"role": "user", "content": example["task"]})
        messages.append({"role": "assistant", "content": json.dumps({"command": example["command"]})})
    seen = episode.run("ls")["output"].split()
    messages.append({"role": "user", "content": f"{episode.start['instruction']} Files: {' '.join(seen)}"})
    for _ in range(episode.start["budgets"]["steps"]):
        command = decide(episode, messages)
        if command is None:
            return episode.end("no_valid_action")
        result = episode.run(command)
        if result["exit_code"] == 0:
            return episode.end("submitted")
        messages.append({"role": "assistant", "content": json.dumps({"command": command})})
        messages.append({"role": "user", "content": f"exit {result['exit_code']}: {result['output'][-200:].strip()}"})
    return episode.end("gave_up")


def chosen(instruction: str) -> list[dict[str, str]]:
    """Return the examples whose tasks share most words with the instruction, the likest last; the first for none."""
    words = _words(instruction)
    like = sorted(EXAMPLES, key=lambda example: len(words & _words(example["task"])))
    return [example for example in like if words & _words(example["task"])][-SHOTS:] or EXAMPLES[:1]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower().split("files:")[0])) - {"the", "into", "that", "txt", "file"}


def decide(episode: Episode, messages: list[dict[str, str]]) -> str | None:
    """Ask for a command; an answer that is none is rejected once."""
    for _ in range(2):
        answer = episode.model(messages, response_format=ACTION)
        try:
            command: str = json.loads(answer["text"] or "")["command"].strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            episode.reject(f"no command: {error}")
            episode.action("repair", mechanism="ask-again")
            continue
        if command:
            return command
        episode.reject("an empty command")
    return None


if __name__ == "__main__":
    main()
