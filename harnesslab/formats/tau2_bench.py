"""τ²-bench simulations: one, a list, or a results file; the simulated user talks, and calls tools of its own.

An agent sees what both say and the results of its own tools. The user's calls happen on the user's side: they are kept
as the user's, and are in none of the agent's inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.answers import REQUESTOR, USER
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, ToolRequest, UserTurn, Verification
from harnesslab.core.trace.messages import result_of, view
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.conversation import model_output
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.recordings import attempt
from harnesslab.formats.reading.rows import rows_of
from harnesslab.formats.reading.sniff import Shape, shape_of
from harnesslab.formats.reading.transcript import Transcript, tool_call
from harnesslab.formats.reading.values import (
    elapsed,
    instant,
    items,
    mapping,
    moment,
    not_empty,
    number,
    objects,
    text,
    whole,
)

NAME = "tau2-bench"
_SIMULATION = {"task_id", "messages", "reward_info", "termination_reason"}
_UNKNOWN = "not recorded by τ²-bench simulations"
_CUT = {
    "max_steps": Outcome.STEP_CAP,
    "timeout": Outcome.TIMEOUT,
    "infrastructure_error": Outcome.INFRA_ERROR,
    "unexpected_error": Outcome.INFRA_ERROR,
}
"""Ends that are no failure of verification."""


def recognises(shape: Shape) -> bool:
    """A simulation, rows of them, or a document that lists them."""
    listed = objects(shape.object.get("simulations"))
    rows = (shape.object, shape.first_object(), *listed[:1])
    return any(row.keys() >= _SIMULATION for row in rows)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the simulations by task and trial number."""
    results = shape_of(unit).object
    rows = [row for row in rows_of(unit, report, "simulations") if row.value.keys() >= _SIMULATION]
    if not rows:
        raise FormatRefused("no simulation could be read", where=unit.name)
    rows.sort(key=lambda row: (str(row.value.get("task_id")), whole(row.value.get("trial")) or 0, row.number))
    source_digest = unit.digest()
    for position, row in enumerate(rows):
        source = Source(unit.name, source_digest, NAME, position)
        yield from attempt(report, f"simulation {row.number}", partial(_recording, row.value, results, source))


def _recording(row: Mapping[str, JSON], results: Mapping[str, JSON], source: Source) -> Recording:
    info = mapping(results.get("info"))
    agent, panel = mapping(info.get("agent_info")), text(mapping(info.get("environment_info")).get("domain_name"))
    manifest = _manifest(row, results)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    talk = _Talk(builder, text(agent.get("llm")), mapping(agent.get("llm_args")), moment(row.get("start_time")))
    talk.read(items(row.get("messages")))
    reward, reason = number(mapping(row.get("reward_info")).get("reward")), text(row.get("termination_reason"))
    if reward is not None:
        builder.add(_verdict(row, reward, talk.step))
    outcome = _outcome(reward, reason)
    ended = {"termination_reason": reason} if reason else {}
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=reason if outcome in _CUT.values() else None, extra=ended),
        outcome=outcome,
        case=str(row.get("task_id")),
        source=source,
        panel=f"tau2-bench {panel}".strip(),
        harness=text(agent.get("implementation")),
        revision=text(info.get("git_commit")),
        model=text(agent.get("llm")),
        trial=whole(row.get("trial")) or 0,
        trial_stated=whole(row.get("trial")) is not None,
        reward=reward,
        replayability=Replayability.VIEW_ONLY,
        missing="model: the requests are not recorded, only the conversation",
        started_at=instant(row.get("start_time")) or instant(row.get("timestamp")),
        ended_at=instant(row.get("end_time")),
        facts=not_empty({**{key: value for key, value in row.items() if key != "messages"}, "info": dict(info)}),
        totals=Totals(
            messages=talk.messages,
            kept_messages=talk.kept,
            cost=number(row.get("agent_cost")) or None,
            passed=None if reward is None else _full(reward),
        ),
    )


class _Talk:
    """Follows a simulation's messages as its agent lived them."""

    def __init__(self, builder: TraceBuilder, model: str, settings: Mapping[str, JSON], start: float | None) -> None:
        self.builder = builder
        self.step = 0
        self.messages = self.kept = 0
        self._transcript = Transcript(builder)
        self._model, self._settings, self._start = model, dict(settings), start
        self._calls = 0
        self._answers: dict[tuple[str, str], list[tuple[int, Mapping[str, JSON]]]] = {}

    def read(self, messages: Sequence[JSON]) -> None:
        """Append the events of all messages."""
        self.messages = len(messages)
        spoken = [mapping(message) for message in messages]
        for place, message in enumerate(spoken):
            if message.get("role") == "tool":
                for part in objects(message.get("tool_messages")) or [message]:
                    key = (text(part.get("requestor")) or "assistant", text(part.get("id")))
                    self._answers.setdefault(key, []).append((place, part))
        counted = any(message.get("role") == "assistant" and message.get("usage") for message in spoken)
        for place, message in enumerate(spoken):
            self._take(message, place, counted=counted)

    def _take(self, message: Mapping[str, JSON], place: int, *, counted: bool) -> None:
        role, at = message.get("role"), elapsed(moment(message.get("timestamp")), self._start)
        fields: dict[str, Any] = {"at": at, "origin": f"message {place}"}
        self.kept += role in ("assistant", "user", "system", "tool")
        if role == "assistant":
            self._assistant(message, fields, written=counted and not self._calls and not message.get("usage"))
        elif role == "user":
            self._user(message, fields)
        elif role == "system":
            self._transcript.say({"role": "system", "content": message.get("content")})
            self.builder.add(HarnessAction(name="system", detail=message.get("content"), step=self.step, **fields))

    def _assistant(self, message: Mapping[str, JSON], fields: dict[str, Any], *, written: bool) -> None:
        """Append a turn of the agent; the greeting that opens a talk is `written` by the harness, by no model."""
        seen = view(message)
        if written and not seen.tool_calls:
            self.builder.add(HarnessAction(name="greeting", detail=message.get("content"), step=self.step, **fields))
        else:
            self.step, self._calls = self._calls, self._calls + 1
            self._transcript.call(
                model=self._model,
                settings=self._settings,
                usage=usage.openai(message.get("usage")),
                raw_response=message.get("raw_data"),
                step=self.step,
                extra=not_empty({"cost": message.get("cost")}),
                **model_output(seen),
                **fields,
            )
        self._transcript.say(_plain(message))
        self._run(seen.tool_calls, "assistant", {})

    def _user(self, message: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append what the simulated user said and did; what it cost is the user's, never the agent's."""
        seen = view(message)
        spent = not_empty({"usage": message.get("usage"), "cost": message.get("cost")})
        step = self._calls
        if message.get("content") is not None or not seen.tool_calls:
            turn = UserTurn(content=message.get("content"), simulated=True, step=step, extra=spent, **fields)
            self.builder.add(turn)
            self._transcript.say({"role": "user", "content": message.get("content")})
            spent = {}
        self._run(seen.tool_calls, USER, spent, step)

    def _run(self, calls: Sequence[ToolRequest], who: str, spent: Mapping[str, JSON], step: int | None = None) -> None:
        """Append tool calls with the results of whoever asked for them."""
        for emitted, request in enumerate(calls):
            waiting = self._answers.get((who, request.id), [])
            place, answer = waiting.pop(0) if waiting else (0, {})
            shown = result_of(answer) if answer else None
            extra: dict[str, JSON] = {REQUESTOR: USER, **spent} if who == USER else {}
            self.builder.add(
                tool_call(
                    request,
                    emitted=emitted,
                    step=self.step if step is None else step,
                    agent=USER if who == USER else "",
                    result=shown,
                    has_result=bool(answer),
                    error=(text(shown) or "error") if answer.get("error") is True else None,
                    at=elapsed(moment(answer.get("timestamp")), self._start),
                    origin=f"message {place}" if answer else "",
                    extra=extra,
                )
            )
            if answer and who != USER:
                self._transcript.say({"role": "tool", "tool_call_id": request.id, "content": answer.get("content")})


def _plain(message: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a message of the agent as its later requests hold it, without what it cost."""
    return not_empty({key: message.get(key) for key in ("role", "content", "tool_calls")})


def _full(reward: float) -> bool:
    return reward >= 1 or math.isclose(reward, 1, rel_tol=1e-9)


def _outcome(reward: float | None, reason: str) -> Outcome:
    if reward is not None and _full(reward):
        return Outcome.SOLVED
    if reason in _CUT:
        return _CUT[reason]
    return Outcome.UNKNOWN if reward is None else Outcome.FAILED_VERIFICATION


def _verdict(row: Mapping[str, JSON], reward: float, step: int) -> Verification:
    said = mapping(row.get("reward_info"))
    scores = dict(mapping(said.get("reward_breakdown")))
    rest = not_empty({key: value for key, value in said.items() if key not in ("reward", "reward_breakdown")})
    return Verification(step=step, passed=_full(reward), reward=reward, scores=scores, extra=rest)


def _manifest(row: Mapping[str, JSON], results: Mapping[str, JSON]) -> Manifest:
    info = mapping(results.get("info"))
    agent = mapping(info.get("agent_info"))
    settings = mapping(agent.get("llm_args"))
    task = next((task for task in objects(results.get("tasks")) if task.get("id") == row.get("task_id")), None)
    seed = row.get("seed") if row.get("seed") is not None else settings.get("seed")
    return Manifest.of(
        {
            "harness.name": text(agent.get("implementation")) or None,
            "harness.revision": text(info.get("git_commit")) or None,
            "panel.name": f"tau2-bench {text(mapping(info.get('environment_info')).get('domain_name'))}".strip(),
            "panel.case": str(row.get("task_id")),
            "panel.case_digest": digest(task) if task is not None else None,
            "model.name": text(agent.get("llm")) or None,
            "sampling.temperature": settings.get("temperature"),
            "sampling.top_p": settings.get("top_p"),
            "sampling.max_tokens": settings.get("max_tokens"),
            "seeds.seed": None if seed is None else str(seed),
            "budgets.steps": info.get("max_steps"),
            "evaluator.name": "tau2-bench reward" if row.get("reward_info") else None,
        },
        unknown=_UNKNOWN,
    )
