"""Where the threads of an agent's connections meet the one thread that drives and records a rollout."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harnesslab.core.running.ports import Exchange
from harnesslab.core.trace.events import ModelCall
from harnesslab.runtime.gateway.requests import AgentRequest, Problem

MOST_NOTES = 50
"""Refused requests that are recorded one by one; more are counted."""
POLL_S = 0.5
OVER = Problem(403, "rollout_over", "the rollout is over")


@dataclass(eq=False, slots=True)
class Question:
    """A request of the agent that waits for its answer."""

    request: AgentRequest
    gone: Callable[[], bool]
    """Whether the agent's client has closed the connection, so that no answer reaches it."""
    agent: str = ""
    step: int = 0
    attempt: int = 0
    seed: int | None = None
    label: str = ""
    left: bool = False
    """Whether its client had gone before the rollout ended, which ends every client."""
    reply: ModelCall | Problem | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def answer(self, reply: ModelCall | Problem) -> None:
        """Let the agent have its answer."""
        self.reply = reply
        self.done.set()


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt at a question that the engine ended."""

    question: Question
    exchange: Exchange
    at: float
    last: bool
    """Whether no other attempt follows."""


@dataclass(frozen=True, slots=True)
class UnpassedRequest:
    """A request that was not passed on."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Something unforeseen in another thread."""

    question: Question
    error: BaseException


@dataclass(frozen=True, slots=True)
class Woken:
    """Nothing but a reason to look up."""


Item = Question | Attempted | UnpassedRequest | Broken | Woken


class Inbox:
    """The gateway's boundary: questions go in, and wait until they are answered."""

    def __init__(self, models: Callable[[], Sequence[str]]) -> None:
        self._models = models
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self.refusals = 0

    def ask(self, request: AgentRequest, gone: Callable[[], bool]) -> ModelCall | Problem:
        """Wait for the answer to a request; called from connections."""
        question = Question(request, gone)
        if self._closed.is_set():
            return OVER
        self._items.put(question)
        while not question.done.wait(POLL_S):
            if self._closed.is_set():  # perhaps after the look above: nobody takes questions any more
                return OVER
        return question.reply or OVER

    def refused(self, sentence: str) -> None:
        """Note a request that was not passed on; called from connections."""
        with self._lock:
            self.refusals += 1
            if self.refusals > MOST_NOTES:
                return
        self._items.put(UnpassedRequest(sentence))

    def models(self) -> Sequence[str]:
        """List the models there are."""
        return self._models()

    def put(self, item: Item) -> None:
        """Put an item before the thread that drives the rollout."""
        self._items.put(item)

    def next(self, timeout: float) -> Item | None:
        """Return the next item, or None where none came in time."""
        try:
            return self._items.get(timeout=timeout)
        except queue.Empty:
            return None

    @property
    def waiting(self) -> bool:
        """Whether an item waits."""
        return not self._items.empty()

    def close(self) -> None:
        """Answer no more questions."""
        self._closed.set()
