"""The model boundary of an agent behind the gateway: live, served from a record, or failing; recorded by one thread."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import RETRIED, Exchange, Failure, FailureKind, ModelRequest
from harnesslab.core.running.record import RequestKeys
from harnesslab.core.running.rerun import OnMiss, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, ModelCall
from harnesslab.core.trace.sent import KEY
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.runtime.driver.askers import Askers
from harnesslab.runtime.driver.calls import (
    FROM_RECORD,
    IN_ORDER,
    SWITCHED_OFF,
    Request,
    count,
    count_call,
    live_call,
    next_seed,
    served_call,
    settings_of,
    unasked_call,
)
from harnesslab.runtime.driver.episode import Diverged, DrivenEpisode, Ended
from harnesslab.runtime.driver.inbox import Attempted, Broken, Inbox, Question, UnpassedRequest, Woken
from harnesslab.runtime.driver.talks import Talk, Talks
from harnesslab.runtime.gateway.requests import Problem, problem_of

LONGEST_WAIT_S = 30.0
LONGEST_ASK_S = 3600.0
"""Seconds of one attempt, where the rollout itself has no end."""
LAST_S = 5.0
"""Seconds that an answer is waited for which nobody wants any more."""
MOST_BYTES = 512 * 1024 * 1024
"""Bytes of bodies that one rollout may send: an agent can't fill the store."""
INFRASTRUCTURE = RETRIED | {FailureKind.TIMEOUT}


class AgentBoundary:
    """Answers an agent's requests in the thread that calls `turn`."""

    def __init__(
        self, episode: DrivenEpisode, inbox: Inbox, leave: Callable[[], None], *, governed: bool = True
    ) -> None:
        self._episode, self._inbox = episode, inbox
        self._governed = governed
        """Whether the recipe's settings, seeds and budgets apply, or the agent's own alone."""
        self._talks = Talks()
        self._of: dict[Question, Talk] = {}
        self._latest: Question | None = None
        self._askers = Askers(leave)
        self._ending = threading.Event()
        self._over: Problem | None = None
        self._bytes = 0
        # Requests get their keys in the order in which they came, and their places in the trace in that in which they
        # were answered, which need not be the same: a builder of its own follows the former.
        self._scratch = TraceBuilder()
        self._keys = RequestKeys(self._scratch.payloads, episode.rules)
        self.failed: str = ""
        """Why the last request got no answer, where infrastructure failed it."""

    def turn(self, timeout: float) -> bool:
        """Do what comes next and say whether a call was recorded; raises `Ended` where the rollout can't go on."""
        match self._inbox.next(timeout):
            case Question() as question:
                return self._begin(question)
            case Attempted() as attempted:
                return self._attempted(attempted)
            case UnpassedRequest(sentence):
                episode = self._episode
                step = max(episode.step, 0)
                refused: JSON = {"why": sentence}
                episode.add(HarnessAction(name="gateway refused", detail=refused, step=step, at=episode.at()))
                episode.writer.flush()
            case Broken(question, error):
                self._of.pop(question, None)
                question.answer(Problem(500, "server_error", "the gateway failed"))
                raise error
            case Woken() | None:
                pass
        return False

    def end(self, why: Ended) -> None:
        """Answer what still comes with why the rollout ended."""
        self._over = self._over or Problem(403, why.outcome.value, why.why or "the rollout is over")

    def close(self, *, left: bool) -> None:
        """Record what was still under way, then let go; `left` says that the agent ended by itself."""
        for question in self._of:
            question.left = left or question.gone()
        self._ending.set()
        self._over = self._over or Problem(403, "rollout_over", "the rollout is over")
        deadline = time.monotonic() + LAST_S
        try:
            while (self._inbox.waiting or self._of) and time.monotonic() < deadline:
                self.turn(0.05)
            for question in self._of:
                note: JSON = {"step": question.step, "agent": question.agent}
                self._episode.add(HarnessAction(name="left unanswered", detail=note, step=question.step))
                question.answer(self._over)
        finally:
            self._inbox.close()
            self._askers.close()

    def _begin(self, question: Question) -> bool:
        if self._over is not None:
            question.answer(self._over)
            return False
        try:
            self._place(question)
            return self._decide(question)
        except Ended as end:
            self.end(end)
            question.answer(self._over or problem_of_end(end))
            raise

    def _place(self, question: Question) -> None:
        """Find the request's conversation, step and attempt, and the tool results it brings."""
        episode, asked = self._episode, question.request
        episode.remaining()
        self._bytes += len(asked.body)
        if self._bytes > MOST_BYTES:
            raise Ended(Outcome.CRASH, f"the agent sent more than {MOST_BYTES // 2**20} MiB", origin="harness")
        talk, added = self._talks.of(asked)
        question.agent, self._latest = talk.agent, question
        if any(of is talk and each.gone() for each, of in self._of.items()):
            talk.failed = True  # its client asks again before the engine is done with what nobody waits for
        for call in talk.results(added, episode.at()):
            episode.bound()
            episode.add(call)
        if talk.repeats(asked):
            talk.attempt += 1
            episode.another_call()
        else:
            episode.open_step()
            talk.step, talk.attempt, talk.seed = episode.step, 0, None
        talk.messages, talk.last_request, talk.failed = asked.messages, asked, False
        question.step, question.attempt = talk.step, talk.attempt
        self._of[question] = talk

    def _decide(self, question: Question) -> bool:
        episode, asked = self._episode, question.request
        switch = episode.switch("model")
        key = b""
        if episode.record is not None:
            window, schemas = self._scratch.ask(asked.messages, tools=asked.tools, agent=question.agent)
            key = self._keys.key(question.agent, window, schemas, asked.settings)
        match switch:
            case Switch.LIVE:
                self._send(question)
                return False
            case Switch.FAIL:
                self._add(question, unasked_call(episode, self._request(question), SWITCHED_OFF))
                self._answer(question, Problem(400, "switched_off", SWITCHED_OFF))
            case Switch.RECORDED:
                self._serve(question, key)
        return question.done.is_set()

    def _serve(self, question: Question, key: bytes) -> None:
        episode = self._episode
        record, plan = episode.record, episode.plan
        if record is None or plan is None:
            raise Ended(Outcome.INFRA_ERROR, "there is no record to serve from")
        frozen = bool(episode.rebuilding and plan.revision)
        attempts = record.model_in_order() if frozen else record.model(key)
        if attempts is None:
            missed = record.missed_model(question.request.messages, question.step)
            goes_on = plan.on_miss is OnMiss.LIVE and not episode.rebuilding
            if not goes_on:
                why = f"not in the record: {missed.why}"
                self._add(question, unasked_call(episode, self._request(question), why))
                self._of.pop(question)
            episode.miss(missed, live=goes_on)
            question.label = "live after a miss"
            self._send(question)
            return
        episode.counts.served += 1
        count_call(episode, question.agent)
        for event in attempts:
            request = self._request(question)
            served = served_call(episode, request, request.window, event, IN_ORDER if frozen else FROM_RECORD)
            body = episode.bodies.keep(question.agent, question.request.body)
            extra = {**served.extra, KEY: dict(body.facts)}
            self._add(question, msgspec.structs.replace(served, raw_request=body.text, extra=extra), event.attempt)
        self._answer(question, _last(episode))

    def _send(self, question: Question) -> None:
        """Have the engine asked in another thread."""
        episode, asked, talk = self._episode, question.request, self._of[question]
        settings: Mapping[str, JSON] = asked.settings
        if self._governed:
            talk.seed = next_seed(episode, question.agent) if talk.seed is None else talk.seed
            settings, question.seed = settings_of(episode, asked.settings, talk.seed), talk.seed
        outgoing = ModelRequest(asked.messages, settings, asked.tools, stream=episode.recipe.stream)
        self._askers.give(lambda: self._ask(question, outgoing))

    def _ask(self, question: Question, outgoing: ModelRequest) -> None:
        """Ask until there is an answer or no sense in asking; in a thread of its own."""
        episode = self._episode
        repeats = episode.recipe.repeats
        try:
            while True:
                at = episode.at()
                left = min(max(episode.deadline - time.monotonic(), 0.1), LONGEST_ASK_S)
                exchange = episode.engine.ask(outgoing, timeout=left, on_text=lambda _: self._wanted(question))
                if exchange.failure is not None and (question.left or self._left(question)):
                    exchange = _abandoned(exchange)
                failure = exchange.failure
                again = failure is not None and failure.kind in RETRIED and repeats > 0 and not self._ending.is_set()
                self._inbox.put(Attempted(question, exchange, at, not again))
                if not again or failure is None:
                    return
                repeats -= 1
                self._ending.wait(min(failure.retry_after or 0.5, LONGEST_WAIT_S, left))
        except BaseException as error:  # noqa: BLE001 - the thread that drives the rollout raises it
            self._inbox.put(Broken(question, error))

    def _wanted(self, question: Question) -> bool:
        return not self._ending.is_set() and not question.gone()

    def _left(self, question: Question) -> bool:
        return not self._ending.is_set() and question.gone()

    def _attempted(self, attempted: Attempted) -> bool:
        episode, question, exchange = self._episode, attempted.question, attempted.exchange
        count(episode, exchange)
        request = self._request(question)
        event = live_call(episode, request, request.window, exchange, attempted.at, question.seed, question.label)
        recorded = self._add(question, event, question.attempt)
        failure = exchange.failure
        if failure is None or failure.kind is not FailureKind.HUNG_UP or question is self._latest:
            self.failed = failure.sentence if failure is not None and _is_ours(exchange, failure) else ""
        if attempted.last:
            self._answer(question, recorded if failure is None else problem_of(failure))
        else:
            question.attempt += 1
            self._of[question].attempt = question.attempt
            episode.writer.flush()
        return True

    def _request(self, question: Question) -> Request:
        """Place a request in the trace as it is now; its call must be added before another is placed."""
        asked = question.request
        window, schemas = self._episode.writer.builder.ask(asked.messages, tools=asked.tools, agent=question.agent)
        return Request(asked.messages, asked.tools, asked.settings, question.agent, window, schemas, asked.body)

    def _add(self, question: Question, event: ModelCall, attempt: int | None = None) -> ModelCall:
        asked = question.request
        facts: dict[str, JSON] = {"dialect": asked.dialect, "model_asked": asked.model}
        facts |= {"kept_back": dict(asked.kept_back)} if asked.kept_back else {}
        facts |= {"retry": asked.retry} if asked.retry else {}
        number = question.attempt if attempt is None else attempt
        made = msgspec.structs.replace(event, step=question.step, attempt=number, extra={**event.extra, **facts})
        self._episode.writer.builder.answer(made)
        self._of[question].note(made)
        return made

    def _answer(self, question: Question, reply: ModelCall | Problem) -> None:
        """Store what was recorded, then let the agent have its answer."""
        self._of.pop(question, None)
        self._episode.writer.flush()
        question.answer(reply)


def _abandoned(exchange: Exchange) -> Exchange:
    """Return an attempt that was given up because its client had gone, with how much of its patience our queue took."""
    seconds = exchange.waited + exchange.latency
    turn = f", after waiting {exchange.waited:.1f} s for its turn at the engine" if exchange.waited >= 0.1 else ""
    sentence = f"the agent's client hung up after {seconds:.1f} s{turn}"
    return dataclasses.replace(exchange, answer=None, failure=Failure(FailureKind.HUNG_UP, sentence))


def _is_ours(exchange: Exchange, failure: Failure) -> bool:
    """Say whether a failure is the lab's: infrastructure's, or a client's whose patience mostly went in our queue."""
    if failure.kind is FailureKind.HUNG_UP:
        return exchange.waited > exchange.latency
    return failure.kind in INFRASTRUCTURE


def problem_of_end(end: Ended) -> Problem:
    """Return why a rollout ended as the agent is told."""
    return Problem(403, "left_the_record" if isinstance(end, Diverged) else end.outcome.value, end.why)


def _last(episode: DrivenEpisode) -> ModelCall:
    event = episode.writer.builder.events[-1]
    return event if isinstance(event, ModelCall) else ModelCall()
