"""The form in which a Harbor trajectory viewer keeps trials: steps without requests, and the verifier's log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import (
    HarnessAction,
    RolloutStarted,
    ToolCall,
    ToolRequest,
    Usage,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.messages import parse_arguments
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.recordings import case_of, only
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.transcript import Transcript
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, objects, seconds, text, whole

NAME = "harbor-viewer"
_STEP = {"index", "role", "text", "toolCalls", "observation"}
_JUDGED = re.compile(
    r"^[ \t]*(?:judge(?:'s)?[ \t])?(?:response|verdict|judg(?:e?)ment|grade)[ \t]*[:=][ \t]*\W*(in)?correct\W*$",
    re.MULTILINE | re.IGNORECASE,
)
_SUMMARY = re.compile(r"^=+ (?P<counts>\d+ \w+(?:, \d+ \w+)*) in [\d.]+s.*=+$", re.MULTILINE)


def recognises(shape: Shape) -> bool:
    """An object with steps that have a role, a text and tool calls."""
    steps = objects(shape.object.get("steps"))
    return bool(steps) and steps[0].keys() >= _STEP


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's one trial."""
    document = mapping(unit.only.json())
    source = Source(unit.name, unit.digest(), NAME)
    yield only(unit.name, lambda: _recording(document, source, report))


def _recording(document: Mapping[str, JSON], source: Source, report: Report) -> Recording:
    steps, log = items(document.get("steps")), document.get("verifierLog")
    times = [time for step in objects(steps) if (time := instant(step.get("timestamp")))]
    began = times[0] if times else None
    if any(later < earlier for earlier, later in pairwise(times)):
        report.remark("timestamps", "some go backwards; the steps are kept in the order of the file")
    builder = TraceBuilder()
    turns = _add_steps(builder, steps, began)
    passed = pytest_verdict(log)
    if passed is None:
        passed = judge_verdict(log)
    if isinstance(log, str):
        reward = None if passed is None else float(passed)
        builder.add(Verification(step=max(turns, 0), passed=passed, reward=reward, output=log, origin="verifierLog"))
    case, case_digest = case_of(_task(steps))
    manifest = Manifest.of(
        {"panel.case": case, "panel.case_digest": case_digest}, unknown="not recorded by the viewer's files"
    )
    builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    outcome = Outcome.UNKNOWN if passed is None else Outcome.SOLVED if passed else Outcome.FAILED_VERIFICATION
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome),
        outcome=outcome,
        case=case,
        source=source,
        reward=None if passed is None else float(passed),
        replayability=Replayability.VIEW_ONLY,
        missing="model: the requests are not recorded; neither agent nor model is named",
        started_at=began,
        ended_at=max(times) if times else None,
        facts=not_empty({key: value for key, value in document.items() if key not in ("steps", "verifierLog")}),
    )


def _task(steps: list[JSON]) -> str:
    """Return what the user said before the agent's first turn; its beginning may be the same for all tasks."""
    opening = takewhile(lambda step: step.get("role") != "agent", objects(steps))
    return "\n".join(text(step.get("text")) for step in opening if step.get("role") == "user")


def _add_steps(builder: TraceBuilder, steps: list[JSON], began: datetime | None) -> int:
    """Append the events of all steps and return the last turn, -1 where the agent had none."""
    transcript = Transcript(builder)
    turn = -1
    for position, item in enumerate(steps):
        step = mapping(item)
        common: dict[str, Any] = {
            "at": seconds(began, instant(step.get("timestamp"))),
            "origin": f"step {step.get('index', position)}",
            "extra": not_empty({"mutations": step.get("mutations"), "edits": step.get("edits")}),
        }
        said = step.get("text")
        if step.get("role") == "agent":
            turn += 1
            _add_turn(builder, transcript, step, {**common, "step": turn})
            continue
        common["step"] = max(turn, 0)
        if step.get("role") == "user":
            builder.add(UserTurn(content=said, **common))
        else:
            builder.add(HarnessAction(name=text(step.get("role")) or "step", detail=said, **common))
        transcript.say({"role": "user" if step.get("role") == "user" else "system", "content": said})
    return turn


def _add_turn(
    builder: TraceBuilder, transcript: Transcript, step: Mapping[str, JSON], common: Mapping[str, Any]
) -> None:
    """Append one turn of the agent; one observation answers all its calls, and is given to the only or last one."""
    calls = [_request(call) for call in objects(step.get("toolCalls"))]
    said, thought, observation = text(step.get("text")), text(step.get("reasoning")), step.get("observation")
    transcript.call(
        text=said or None,
        reasoning=thought or None,
        tool_calls=tuple(calls),
        usage=_usage(step.get("tokens")),
        **common,
    )
    wire: list[JSON] = [{"function": {"name": call.name, "arguments": call.raw or call.arguments}} for call in calls]
    transcript.say({"role": "assistant", "content": said, **({"tool_calls": wire} if wire else {})})
    plain = {key: value for key, value in common.items() if key != "extra"}
    for emitted, call in enumerate(calls):
        answered = observation is not None and emitted == len(calls) - 1
        extra = {"observation_of": "all calls of the step"} if answered and len(calls) > 1 else {}
        builder.add(
            ToolCall(
                name=call.name,
                arguments=call.arguments,
                raw=call.raw,
                result=observation if answered else None,
                has_result=answered,
                emitted=emitted,
                extra=extra,
                **plain,
            )
        )
    if observation is not None:
        if not calls:
            builder.add(HarnessAction(name="observation", detail=observation, **plain))
        transcript.say({"role": "tool" if calls else "user", "content": observation})


def _request(call: Mapping[str, JSON]) -> ToolRequest:
    arguments, raw = parse_arguments(call.get("args"))
    return ToolRequest(name=text(call.get("name")) or "unnamed", arguments=arguments, raw=raw)


def _usage(tokens: JSON) -> Usage | None:
    """Return the token counts; zero of both means that the viewer had none."""
    asked, answered = whole(mapping(tokens).get("prompt")), whole(mapping(tokens).get("completion"))
    return Usage(input=asked, output=answered) if asked or answered else None


def judge_verdict(log: JSON) -> bool | None:
    """Read the last line in which a judge says correct or incorrect; None where none does."""
    found = _JUDGED.findall(log) if isinstance(log, str) else []
    return not found[-1] if found else None


def pytest_verdict(log: JSON) -> bool | None:
    """Read the last summary line of pytest: True if all passed, False if any failed, None if it says neither."""
    found = list(_SUMMARY.finditer(log)) if isinstance(log, str) else []
    if not found:
        return None
    counts = {word: int(count) for count, word in (part.split() for part in found[-1]["counts"].split(", "))}
    if counts.get("failed"):
        return False
    broken = counts.get("error") or counts.get("errors")
    return True if counts.get("passed") and not broken else None
