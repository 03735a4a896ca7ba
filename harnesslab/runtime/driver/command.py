"""One rollout of a command harness: any agent program, in the case's sandbox, behind the recording gateway."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import Execution, Limits, Place, SandboxRefused
from harnesslab.core.running.recipe import HarnessSource
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction
from harnesslab.runtime.driver.agent import AgentBoundary
from harnesslab.runtime.driver.checkout import Checkout
from harnesslab.runtime.driver.episode import DrivenEpisode, Ended
from harnesslab.runtime.driver.frame import Result, closed, prepared, whose
from harnesslab.runtime.driver.inbox import Inbox, Woken
from harnesslab.runtime.gateway.server import Gateway, served

HARNESS_FOLDER = "/harness"
PORT = 8080
"""Where the gateway is found inside the sandbox."""
KEY = "harnesslab"
"""What an agent gets as its key: the path is the secret, and agents want a key."""
LIMITS = Limits(memory=2 * 1024**3, processes=256)
"""An agent is a larger program than the commands it runs."""
LONGEST_S = 7 * 24 * 3600.0
"""Seconds after which a sandbox ends any agent, whatever its budget."""
GRACE_S = 1.5
"""Seconds that an agent has to end by itself once a budget is used up."""
POLL_S = 0.25
SHOWN = 4000
"""Characters of an agent's last output that are kept."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent program and the gateway that it will find."""

    harness: HarnessSource
    words: Mapping[str, str]
    """What `{…}` in its arguments and variables stands for."""
    gateway: Gateway
    inbox: Inbox
    socket: Path

    def place(self, place: Place, code: Checkout | None) -> Place:
        """Return the case's place with the gateway, and with what the program needs."""
        readable = {**self.harness.readable, **({} if code is None else {HARNESS_FOLDER: str(code.folder)})}
        return dataclasses.replace(place, limits=LIMITS, readable=readable, sockets={PORT: str(self.socket)})

    @property
    def arguments(self) -> list[str]:
        """The program and its arguments."""
        return [filled(word, self.words) for word in self.harness.command]

    @property
    def environ(self) -> dict[str, str]:
        """The variables it is given; its own beat those that name the gateway."""
        own = {name: filled(value, self.words) for name, value in self.harness.environ.items()}
        return {**variables(self.words["base_url"]), **own}


@contextlib.contextmanager
def reachable(harness: HarnessSource, instruction: str, model: str) -> Iterator[Agent]:
    """Have a gateway listen on a socket that no other rollout sees, for the length of the block."""
    if not harness.command:
        raise InvalidValue("the harness names no command", where="harness")
    folder = Path(tempfile.mkdtemp(prefix="harnesslab-"))
    inbox = Inbox(lambda: [model])
    try:
        with served(inbox, socket_path=folder / "gateway") as gateway:
            address = f"{gateway.address(PORT)}/v1"
            words = {"base_url": address, "api_key": KEY, "instruction": instruction, "model": model}
            yield Agent(harness, words, gateway, inbox, folder / "gateway")
    finally:
        inbox.close()
        shutil.rmtree(folder, ignore_errors=True)


def variables(base_url: str) -> dict[str, str]:
    """Return the variables by which agents find their model server."""
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": base_url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": KEY,
    }


def filled(text: str, words: Mapping[str, str]) -> str:
    """Return text with `{base_url}` and the like replaced; other braces stay."""
    for name in ("base_url", "api_key", "model", "instruction"):  # last what may hold braces of its own
        text = text.replace(f"{{{name}}}", words[name])
    return text


def run_command(
    episode: DrivenEpisode, agent: Agent, manifest: str, leave: Callable[[], None], after_step: Callable[[], None]
) -> Result:
    """Run an agent to its end; what goes wrong becomes the outcome. The recorder is left open."""
    before: Mapping[str, bytes] = {}
    facts: Mapping[str, JSON] = {}
    try:
        before = prepared(episode, manifest)
        running = _Running(episode, agent, AgentBoundary(episode, agent.inbox, leave))
        ended = running.to_its_end(after_step)
        facts = running.facts()
    except Ended as end:
        ended = end
    except SandboxRefused as error:
        ended = Ended(Outcome.CRASH, error.sentence, origin=whose(episode))
    return dataclasses.replace(closed(episode, ended, before), facts=facts)


class _Running:
    """An agent while it runs: its program in a thread, its requests in this one."""

    def __init__(self, episode: DrivenEpisode, agent: Agent, boundary: AgentBoundary) -> None:
        self._episode, self._agent, self._boundary = episode, agent, boundary
        self._stop = threading.Event()
        self._done: Execution | None = None
        self._error: BaseException | None = None
        self._began = episode.at()
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)

    def to_its_end(self, after_step: Callable[[], None]) -> Ended:
        """Answer the agent until it has ended or may not go on."""
        ended: Ended | None = None
        self._thread.start()
        try:
            while self._thread.is_alive():
                self._episode.remaining()
                if self._boundary.turn(POLL_S):
                    after_step()
        except Ended as end:
            ended = end
            self._wind_up(end)
        finally:
            self._stop.set()
            self._thread.join()
            self._boundary.close(left=ended is None)
        if self._error is not None:
            raise self._error
        self._note()
        return ended or self._outcome()

    def facts(self) -> Mapping[str, JSON]:
        """Return what is known of the program's end."""
        done, refused = self._done, self._agent.inbox.refusals
        said = _last_words(done) if done is not None else ""
        code = done.exit_code if done is not None else None
        known: dict[str, JSON] = {"agent": {"exit_code": code, "last": said}}
        return known | ({"gateway_refused": refused} if refused else {})

    def _run(self) -> None:
        episode = self._episode
        try:
            # the thread that drives keeps the time budget, which stands still while requests wait for their turn
            self._done = episode.sandbox.run(
                self._agent.arguments, timeout=LONGEST_S, environ=self._agent.environ, stopped=self._stop.is_set
            )
        except BaseException as error:  # noqa: BLE001 - raised by the thread that drives the rollout
            self._error = error
        self._agent.inbox.put(Woken())

    def _wind_up(self, end: Ended) -> None:
        """Let an agent whose budget is used up end by itself, for a moment."""
        self._boundary.end(end)
        if end.outcome is not Outcome.STEP_CAP:
            return
        deadline = time.monotonic() + GRACE_S
        while self._thread.is_alive() and time.monotonic() < deadline:
            self._boundary.turn(0.1)

    def _note(self) -> None:
        episode, done = self._episode, self._done
        if done is None:
            return
        # what it said on its way out may hold times and ids, so that it is kept beside what is compared
        detail: dict[str, JSON] = {"exit_code": done.exit_code, **({"error": done.error} if done.error else {})}
        extra: dict[str, JSON] = {"bytes": done.size, "last": _last_words(done)}
        extra |= {"left_running": True} if done.left_running else {}
        ended = HarnessAction(name="agent ended", detail=detail, step=max(episode.step, 0), at=self._began)
        episode.add(msgspec.structs.replace(ended, latency=done.latency, extra=extra))

    def _outcome(self) -> Ended:
        """Say what the program's end means; an exit code alone is no crash."""
        done, boundary = self._done, self._boundary
        if done is None:
            return Ended(Outcome.CRASH, "the agent was never started", origin="environment")
        if done.timed_out:
            return Ended(Outcome.TIMEOUT, f"the time budget of {self._episode.recipe.case.budgets.wall:g} s is used up")
        if done.error is not None:
            return Ended(Outcome.CRASH, done.error, origin="harness" if self._answers() else "environment")
        if boundary.failed:
            return Ended(Outcome.INFRA_ERROR, boundary.failed)
        if done.exit_code and self._episode.step < 0:
            said = _last_words(done).strip().splitlines()
            last = said[-1] if said else "it said nothing"
            why = f"the agent ended with exit code {done.exit_code} before it asked the model: {last}"
            return Ended(Outcome.CRASH, why, origin="harness")
        return Ended(Outcome.UNKNOWN, f"the agent ended with exit code {done.exit_code}" if done.exit_code else "")

    def _answers(self) -> bool:
        try:
            self._episode.sandbox.state()
        except SandboxRefused:
            return False
        return True


def _last_words(done: Execution) -> str:
    return done.output.decode(errors="replace")[-SHOWN:]
