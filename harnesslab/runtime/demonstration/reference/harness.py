"""A small harness with two actions: run a shell command, or submit. It looks first, repairs, trims, clips, reminds."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from harnesslab.policy import Episode, Stopped, connect

SYSTEM = """You solve a task in a folder with a Linux shell.
Answer with one JSON object and nothing else: {"command": "<one shell command>"}
When the task is done, answer {"command": "submit"}"""
EXAMPLES = (
    ("Write hello into greeting.txt.", ("echo hello > greeting.txt", "submit")),
    ("Count the words of a.txt into n.txt.", ("wc -w < a.txt > n.txt", "submit")),
)
ACTION = {
    "type": "json_schema",
    "json_schema": {
        "name": "action",
        "schema": {
            "type": "object",
            "properties": {"command": {"type": "string", "maxLength": 160}},
            "required": ["command"],
            "additionalProperties": False,
        },
    },
}
LOOK = "date; ls -l"
REPAIRS = 2
SHOWN = 1500  # characters of a result that the model is shown
CHARACTERS_A_TOKEN = 3
LATE = 2  # steps that are left when the reminder comes


def main() -> None:
    """Play one episode."""
    episode = connect()
    with contextlib.suppress(Stopped):
        Harness(episode).solve()


class Harness:
    """One episode: the transcript, and what to do next."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.messages: list[dict[str, str]] = [{"role": "system", "content": SYSTEM}]
        for task, commands in EXAMPLES:
            self.messages.append({"role": "user", "content": task})
            for place, command in enumerate(commands):
                self.messages.append({"role": "assistant", "content": json.dumps({"command": command})})
                if place + 1 < len(commands):
                    self.messages.append({"role": "user", "content": "exit 0"})
        self.messages.append({"role": "user", "content": self.task()})

    def task(self) -> str:
        """Return the instruction with the time, the folder, and what the user answers where the case has one."""
        instruction: str = self.episode.start["instruction"]
        wish = self.episode.user(f"{instruction} Is there anything else I should know?")
        seen = self.episode.run(LOOK)["output"]
        return "\n".join(part for part in (seen.strip(), instruction, wish) if part)

    def solve(self) -> None:
        """Decide, run and observe until the model submits or the steps are used up."""
        for step in range(self.episode.start["budgets"]["steps"]):
            command = self.decide()
            if command is None:
                return self.episode.end("no_valid_action")
            if command == "submit":
                return self.episode.end("submitted")
            self.observe(self.episode.run(command))
            self.remind(self.episode.start["budgets"]["steps"] - step - 1)
        return self.episode.end("gave_up")

    def decide(self) -> str | None:
        """Ask for a command; an answer that is none is rejected, and the model is told why."""
        for _ in range(REPAIRS + 1):
            self.trim()
            answer = self.episode.model(self.messages, response_format=ACTION)
            if answer["error"]:
                self.episode.action("give up", detail=answer["error"])
                return None
            text = answer["text"] or ""
            self.messages.append({"role": "assistant", "content": text})
            command, wrong = parsed(text)
            if not wrong:
                return command
            self.episode.reject(wrong)
            self.episode.action("repair", mechanism="parse-and-repair", detail=wrong)
            said = f"That was no action: {wrong}. Answer with the JSON object."
            self.messages.append({"role": "user", "content": said})
        return None

    def observe(self, result: dict[str, Any]) -> None:
        """Show the model what a command gave, clipped in the middle."""
        output = result["output"]
        if len(output) > SHOWN:
            half = SHOWN // 2
            output = f"{output[:half]}\n[… {len(output) - SHOWN} characters left out …]\n{output[-half:]}"
            self.episode.seen(output)
            self.episode.action("clip", mechanism="clip-output", detail=len(result["output"]))
        status = "timed out" if result["timed_out"] else f"exit {result['exit_code']}"
        self.messages.append({"role": "user", "content": f"{status}\n{output}".strip()})

    def remind(self, left: int) -> None:
        """Say once that the steps run out."""
        if left == LATE:
            text = f"{left} steps are left. Submit when the task is done."
            self.episode.action("reminder", mechanism="step-reminder", detail=text)
            self.messages[-1] = {"role": "user", "content": f"{self.messages[-1]['content']}\n{text}"}

    def trim(self) -> None:
        """Leave out old results once the transcript is longer than the context allows."""
        budget = self.episode.start["budgets"]
        limit = CHARACTERS_A_TOKEN * (budget["context"] - budget["output"])
        left_out = 0
        for place, message in enumerate(self.messages[:-1]):
            if sum(len(item["content"]) for item in self.messages) <= limit:
                break
            if message["role"] == "user" and len(message["content"]) > 60 and place > 2 * len(EXAMPLES):
                self.messages[place] = {"role": "user", "content": "[an earlier result was left out]"}
                left_out += 1
        if left_out:
            self.episode.action("trim", mechanism="trim-context", detail=left_out)


def parsed(text: str) -> tuple[str, str]:
    """Return (command, what is wrong); one of them is empty."""
    try:
        action = json.loads(text)
    except ValueError as error:
        return "", f"not JSON ({error})"
    command = action.get("command") if isinstance(action, dict) else None
    if not isinstance(command, str) or not command.strip():
        return "", "no command in it"
    return command.strip(), ""


if __name__ == "__main__":
    main()
