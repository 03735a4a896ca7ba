"""Running a harness for real: in real sandboxes, against a server that says what a test wrote down."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser, Verifier
from harnesslab.core.running.recipe import HarnessSource, Recipe, SideEffects
from harnesslab.core.running.rerun import RerunPlan
from harnesslab.core.trace.events import AnyEvent
from harnesslab.core.trace.trace import Trace, TraceBuilder
from harnesslab.runtime.driver.run import Begun, Done, RolloutParts, run
from harnesslab.runtime.engines.catalogue import engine
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from tests.runtime.engines.loopback import raw_server, response

HEAD = "from harnesslab.policy import Stopped, connect\nepisode = connect()\n"
LOOP = HEAD + textwrap.dedent("""
    messages = [{"role": "user", "content": episode.start["instruction"]}]
    try:
        while True:
            text = episode.model(messages)["text"]
            messages.append({"role": "assistant", "content": text})
            if text == "submit":
                episode.end()
                break
            result = episode.run(text)
            messages.append({"role": "user", "content": result["output"]})
    except Stopped:
        pass
""")
"""The smallest harness: what the model says is run, until it says submit."""


@dataclass(slots=True)
class Memory:
    """Keeps the events of a rollout in memory, as the recorder would store them."""

    builder: TraceBuilder = field(default_factory=TraceBuilder)
    flushed: int = 0

    def flush(self) -> None:
        """Note how far the rollout is stored."""
        self.flushed = len(self.builder.events)


@dataclass(slots=True)
class Rollout:
    """A rollout that ended."""

    done: Done
    trace: Trace
    flushed: int
    """Events that were stored before it ended."""

    @property
    def counts(self) -> Any:
        """What it sent, ran and was served."""
        return self.done.facts["counts"]

    def of(self, kind: type[AnyEvent]) -> list[Any]:
        """Return the events of a kind."""
        return [event for event in self.trace.events if isinstance(event, kind)]


class Model:
    """A server that answers with given texts in turn, the last one for ever; keeps the bodies that it was sent."""

    def __init__(self, answers: Sequence[str | bytes]) -> None:
        self._answers = list(answers)
        self.bodies: list[Any] = []
        self.address = ""

    def speak(self, connection: Any, request: bytes) -> None:
        """Answer one request."""
        body = request.partition(b"\r\n\r\n")[2]
        if not body:
            connection.sendall(response(b'{"object": "list", "data": [{"id": "m"}]}'))
            return
        self.bodies.append(json.loads(body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        connection.sendall(answer if isinstance(answer, bytes) else response(_completion(answer, len(self.bodies))))


def _completion(text: str, number: int) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 10 * number, "completion_tokens": 2, "total_tokens": 10 * number + 2}
    return json.dumps({"id": f"chatcmpl-{number:016}", "model": "m", "choices": [choice], "usage": usage}).encode()


@contextlib.contextmanager
def model(*answers: str | bytes) -> Iterator[Model]:
    """Serve answers on a loopback port."""
    served = Model(answers)
    with raw_server(served.speak) as address:
        served.address = address
        yield served


def repository(folder: Path, code: str, name: str = "harness.py") -> Path:
    """Make a git repository with one commit, tagged `r1`."""
    folder.mkdir(parents=True)
    (folder / name).write_text(code)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"], ["tag", "r1"]):
        subprocess.run(["git", *arguments], cwd=folder, env=environ, check=True)
    return folder


def case(
    instruction: str = "do it",
    files: Mapping[str, str] | None = None,
    tests: Mapping[str, str] | None = None,
    user: SimulatedUser | None = None,
    setup: tuple[str, ...] = (),
    **budgets: Any,
) -> CaseDefinition:
    """Return a case with small budgets."""
    limits = Budgets(**{"steps": 5, "wall": 60.0, "command": 5.0, **budgets})
    return CaseDefinition("case", instruction, files or {}, setup, Verifier(tests or {}), limits, user)


class Rig:
    """Runs recipes of one harness and case."""

    def __init__(self, folder: Path, code: str = LOOP, **fields: Any) -> None:
        self.folder = folder
        self.source = HarnessSource("mine", str(repository(folder / "code", code)), "r1")
        self.case = fields.pop("case", None) or case()
        self.recipe_fields = fields

    @property
    def recipe(self) -> Recipe:
        """What is run."""
        tools = {"run": SideEffects.SANDBOXED}
        return Recipe(self.source, self.case, "e", **{"tools": tools, "repeats": 1, **self.recipe_fields})

    def go(
        self,
        served: Model,
        plan: RerunPlan | None = None,
        trace: Trace | None = None,
        stopped: Callable[[], bool] = lambda: False,
        recipe: Recipe | None = None,
    ) -> Rollout:
        """Run a rollout and close its trace."""
        memory = Memory()
        client = engine("openai", served.address, "m", {}, self.folder)
        parts = RolloutParts(recipe or self.recipe, client, Bubblewrap(), self.folder / "cache", plan, trace, model="m")

        def begin(_: Begun) -> Memory:
            return memory

        try:
            done = run(parts, begin, stopped, lambda _: None)
        finally:
            client.close()
        result = done.result
        return Rollout(done, memory.builder.close(result.outcome, state=result.state, diff=result.diff), memory.flushed)
