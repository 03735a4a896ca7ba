"""What a loop harness imports: it asks the worker for everything, in lines of JSON over its standard streams.

This one file is put into the harness's sandbox, so it needs nothing but Python. See `docs/harnesses.md`.
"""

from __future__ import annotations

import json
import sys
from typing import IO, Any

PROTOCOL = "harnesslab.policy/1"


class Stopped(Exception):
    """The worker ended the episode: a budget is used up, or a boundary gave no answer."""


class Episode:
    """One episode; `start` holds the instruction, tools, budgets and settings."""

    def __init__(self, reading: IO[str], writing: IO[str]) -> None:
        self._reading, self._writing = reading, writing
        self.start: dict[str, Any] = self._read()

    def model(self, messages: list[Any], *, tools: Any = None, agent: str = "", **settings: Any) -> dict[str, Any]:
        """Ask the model; returns text, reasoning, refusal, tool_calls, finish_reason and usage."""
        return self._ask("model", messages=messages, tools=tools, agent=agent, settings=settings)

    def reject(self, reason: str) -> None:
        """Say that the last answer is no valid action; the next call of the model is a retry of the same step."""
        self._write("reject", reason=reason)

    def tool(self, name: str, arguments: dict[str, Any], *, id: str = "", raw: str | None = None) -> dict[str, Any]:  # noqa: A002 - the field's name
        """Call a tool; returns output, exit_code, timed_out and error."""
        return self._ask("tool", name=name, arguments=arguments, id=id, raw=raw)

    def run(self, command: str) -> dict[str, Any]:
        """Run a shell command in the case's sandbox."""
        return self.tool("run", {"command": command})

    def seen(self, text: str) -> None:
        """Say what the model is shown of the last tool result, where a rule of the harness changed it."""
        self._write("seen", text=text)

    def user(self, text: str) -> str | None:
        """Say something to the case's user and return the answer; None where there is no user, or no more to say."""
        answer: str | None = self._ask("user", text=text)["text"]
        return answer

    def clock(self) -> str:
        """Return the time, in ISO 8601."""
        return str(self._ask("clock")["value"])

    def action(self, name: str, *, mechanism: str | None = None, detail: Any = None) -> None:
        """Record what the harness did by itself; `mechanism` names the rule that fired."""
        self._write("action", name=name, mechanism=mechanism, detail=detail)

    def end(self, reason: str = "submitted", detail: str = "") -> None:
        """End the episode: `submitted`, `gave_up`, `no_valid_action` or `refused`."""
        self._write("end", reason=reason, detail=detail)

    def _ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._write(kind, **fields)
        answer = self._read()
        if answer.get("type") == "stop":
            raise Stopped(answer.get("why", ""))
        return answer

    def _write(self, kind: str, **fields: Any) -> None:
        self._writing.write(json.dumps({"type": kind, **fields}) + "\n")
        self._writing.flush()

    def _read(self) -> dict[str, Any]:
        line = self._reading.readline()
        if not line:
            raise Stopped("the worker is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer


def connect() -> Episode:
    """Take up the episode; what the harness prints goes to standard error from here on."""
    reading, writing = sys.stdin, sys.stdout
    sys.stdout = sys.stderr
    return Episode(reading, writing)
