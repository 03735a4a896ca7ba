"""Running command harnesses for real: the tiny agent in a real sandbox, behind the gateway, against a served model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harnesslab.core.running.recipe import HarnessKind, HarnessSource
from tests.runtime.driver.rig import Rig
from tests.runtime.engines.loopback import response

TINY = (Path(__file__).parent / "tiny_agent.py").read_text()


def answer(text: str | None = None, *commands: str, number: int = 0, raw: str | None = None) -> bytes:
    """Return a completion with text and calls of the tool `run`."""
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": "run", "arguments": raw or json.dumps({"command": command})},
        }
        for place, command in enumerate(commands)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
    body = {"id": f"chatcmpl-{number:016}", "model": "m", "choices": [choice], "usage": usage}
    return response(json.dumps(body).encode())


class AgentRig(Rig):
    """Runs an agent program that is put into a repository as `agent.py`."""

    def __init__(self, folder: Path, *arguments: str, code: str = TINY, **fields: Any) -> None:
        super().__init__(folder, code, **fields)
        command = ("python3", "/harness/harness.py", *arguments)
        self.source = HarnessSource("mine", self.source.repository, "r1", HarnessKind.COMMAND, command=command)
