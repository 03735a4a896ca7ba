"""A person's own agent, recorded where it runs: their shell, their machine, no sandbox, and nothing changed in it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from harnesslab.core.conditions.manifest import Condition, Known, Manifest, Provenance
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.cases import Budgets, CaseDefinition
from harnesslab.core.running.ports import Execution, Pin, SandboxRefused
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, RolloutStarted
from harnesslab.runtime.driver.agent import AgentBoundary
from harnesslab.runtime.driver.conditions import UNKNOWN
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended

NO_LIMIT = Budgets(steps=10**9, wall=10**9)
POLL_S = 0.1
_WHY = "the agent ran in its owner's shell, outside a sandbox"


class Nowhere:
    """The sandbox of an agent that runs outside of one."""

    pins: Sequence[Pin] = ()

    def conditions(self) -> Mapping[str, Condition]:
        """Return nothing: nobody held anything fixed."""
        return {}

    def run(self, command: str | Sequence[str], **_: object) -> Execution:
        """Refuse: there is none."""
        raise SandboxRefused(_WHY)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Refuse: there is none."""
        raise SandboxRefused(_WHY)

    def files(self) -> Mapping[str, bytes]:
        """Refuse: there is none."""
        raise SandboxRefused(_WHY)

    def state(self) -> str:
        """Refuse: there is none."""
        raise SandboxRefused(_WHY)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def recipe_of(name: str, case: str, engine: str) -> Recipe:
    """Return what an episode needs to know; no limit is set, no setting added, nothing tried again."""
    harness = HarnessSource(name, "", kind=HarnessKind.COMMAND)
    return Recipe(harness, CaseDefinition(case, "", budgets=NO_LIMIT), engine, repeats=0)


def conditions(name: str, case: str, engine: Mapping[str, Condition]) -> Manifest:
    """Return the manifest of a recorded command: what is known of it, which is little beside its engine."""
    stated = {"harness.name": name, "harness.protocol": "gateway", "panel.case": case}
    known: dict[str, Condition] = {key: Known(value, Provenance.CONFIGURED) for key, value in stated.items()}
    reasons = {
        "harness.revision": "the command has no revision that the gateway sees",
        "seeds.policy": "the agent's own: requests show what it stated",
        "environment.pins": _WHY,
        "environment.image": _WHY,
        "environment.network": f"{_WHY}: it reaches whatever its owner does",
        "evaluator.name": "nothing was verified",
    }
    return Manifest.from_conditions({**known, **engine}, unknown=UNKNOWN, reasons=reasons)


def run_outside(
    episode: DrivenEpisode, boundary: AgentBoundary, command: Sequence[str], environ: Mapping[str, str], manifest: str
) -> tuple[int, Ended]:
    """Run a command to its end and record what it asks; returns its exit code as a shell says it, and the end.

    Signals that would end this process are the command's: it decides what they mean.
    """
    episode.add(RolloutStarted(manifest=manifest))
    episode.writer.flush()
    with _signals() as heard:
        try:
            process = subprocess.Popen(list(command), env=dict(environ))  # noqa: S603 - the person's own command
        except OSError as error:
            raise InvalidValue(f"can't be started: {error.strerror}", where=command[0]) from None
        heard.append(process.send_signal)
        try:
            while process.poll() is None:
                boundary.turn(POLL_S)
        finally:
            left = process.poll() is not None
            if not left:
                process.terminate()
                process.wait()
            boundary.close(left=left)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    step = max(episode.step, 0)
    episode.add(HarnessAction(name="agent ended", detail={"exit_code": code}, step=step, at=episode.at()))
    return code, _end(boundary, process.returncode)


def _end(boundary: AgentBoundary, code: int) -> Ended:
    if code < 0:
        return Ended(Outcome.INTERRUPTED, f"the agent ended with signal {signal.Signals(-code).name}")
    if boundary.failed:
        return Ended(Outcome.INFRA_ERROR, boundary.failed)
    return Ended(Outcome.UNKNOWN, f"the agent ended with exit code {code}" if code else "")


@contextlib.contextmanager
def _signals() -> Iterator[list[Callable[[int], None]]]:
    """Leave the terminal's signals to the command, which gets them too, and pass on those sent to us alone."""
    send: list[Callable[[int], None]] = []

    def passed_on(number: int, _: FrameType | None) -> None:
        for each in send:
            each(number)

    def left_to_it(number: int, _: FrameType | None) -> None:
        """Do nothing: a handler, since a signal that is ignored would be ignored by the command too."""

    handlers = {signal.SIGTERM: passed_on, signal.SIGHUP: passed_on}
    handlers |= {signal.SIGINT: left_to_it, signal.SIGQUIT: left_to_it}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield send
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
