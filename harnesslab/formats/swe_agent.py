"""SWE-agent trajectories: `.traj` files of every age, and demonstrations that hold only a history.

A step is one completion with its action and observation. What was sent is recorded as `query` since 1.1.0;
before, it is rebuilt from the history, or from the copy of the history that a step keeps under `messages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON, digest, parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import Fidelity, HarnessAction, RolloutStarted, ToolRequest, UserTurn
from harnesslab.core.trace.messages import view
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.transcript import tool_call
from harnesslab.formats.reading.values import items, mapping, number, text, whole, without_nulls

NAME = "swe-agent"
_UNKNOWN = "not recorded by SWE-agent trajectories"
_STATUS = re.compile(r"([a-z_]+)(?:\s*\(([^)]*)\))?")
_ENDS = {
    "submitted": Outcome.UNKNOWN,
    "exit_cost": Outcome.STEP_CAP,
    "exit_context": Outcome.STEP_CAP,
    "exit_format": Outcome.NO_VALID_ACTION,
    "exit_command_timeout": Outcome.TIMEOUT,
    "exit_total_execution_time": Outcome.TIMEOUT,
    "exit_api": Outcome.INFRA_ERROR,
    "exit_environment_error": Outcome.CRASH,
    "exit_error": Outcome.CRASH,
    "skipped": Outcome.NOT_RUN,
    "early_exit": Outcome.INTERRUPTED,
}
_SETTINGS = ("temperature", "top_p", "stop", "completion_kwargs")
_FILLED_IN: dict[str, JSON] = {"provenance": "template"}  # the instance template
_PLACES = ("", "main", "swe_main")
"""Names of the environment that name no case."""


def recognises(shape: Shape) -> bool:
    """Steps with an action and an observation, or a history of messages that name their agent."""
    document = shape.object
    first = mapping(next(iter(items(document.get("trajectory"))), None))
    if {"action", "observation"} <= first.keys() or ({"trajectory", "history", "info"} <= document.keys()):
        return True
    spoken = mapping(next(iter(items(document.get("history"))), None))
    return "role" in spoken and bool({"agent", "message_type"} & spoken.keys())


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's one rollout."""
    run = mapping(unit.only.json())
    info, config = mapping(run.get("info")), _config(run, report)
    manifest = _manifest(run, info, config)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    walk = _Walk(builder, config, [item for item in items(run.get("history")) if isinstance(item, Mapping)])
    walk.read(_steps(run, report))
    outcome, error = _outcome(run, info)
    submission = text(info.get("submission"))
    is_diff = "diff --git" in submission or submission.lstrip().startswith("--- ")
    replayability, missing = _replayability(manifest, recorded=walk.recorded)
    yield Recording(
        manifest=manifest,
        trace=builder.close(outcome, diff=submission if is_diff else None, error=error),
        outcome=outcome,
        case=text(manifest.value("panel.case")) or stem(unit),
        source=Source(unit.name, unit.digest(), NAME),
        harness=NAME,
        revision=text(manifest.value("harness.revision")),
        model=text(manifest.value("model.name")),
        replayability=replayability,
        missing=missing,
        facts={
            **{key: value for key, value in run.items() if key not in ("trajectory", "history", "info")},
            **{key: value for key, value in info.items() if key != "submission" or not is_diff},
        },
        totals=_totals(info),
    )


def _totals(info: Mapping[str, JSON]) -> Totals:
    """Return what the run states of its calls, tokens and cost; 0 is how it writes that nobody counted."""
    stated = mapping(info.get("model_stats"))
    return Totals(
        calls=whole(stated.get("api_calls")) or None,
        input=whole(stated.get("tokens_sent")) or None,
        output=whole(stated.get("tokens_received")) or None,
        cost=number(stated.get("instance_cost")) or None,
    )


def _steps(run: Mapping[str, JSON], report: Report) -> Iterator[tuple[int, Mapping[str, JSON]]]:
    for index, step in enumerate(items(run.get("trajectory"))):
        if isinstance(step, Mapping):
            yield index, step
        else:
            report.skip(f"trajectory {index}", "not an object")


class _Walk:
    """Turns steps into events, finding for each the history message that the completion became."""

    def __init__(
        self, builder: TraceBuilder, config: Mapping[str, JSON], history: Sequence[Mapping[str, JSON]]
    ) -> None:
        self.builder = builder
        model = _model(config)
        self.fields: dict[str, Any] = {
            "model": text(model.get("name")),
            "settings": {key: model[key] for key in _SETTINGS if key in model},
        }
        self.history = history
        self.next = 0
        self.recorded = False

    def read(self, steps: Iterator[tuple[int, Mapping[str, JSON]]]) -> None:
        """Append the events of all steps; without any, those of the history."""
        for position, message in enumerate(self.history):
            if message.get("role") == "assistant" and not message.get("is_demo"):
                break
            if message.get("role") == "user" and not message.get("is_demo"):
                said, origin = message.get("content"), f"history {position}"
                self.builder.add(UserTurn(content=said, origin=origin, extra=_FILLED_IN))
        index = -1
        for index, step in steps:
            self._step(index, step)
        if index < 0:
            self._history()

    def _history(self) -> None:
        for index, position in enumerate(self._answers()):
            self.next = position
            self._step(index, {key: self.history[position].get(key) for key in ("action", "thought")}, position)

    def _answers(self) -> list[int]:
        return [i for i, item in enumerate(self.history) if item.get("role") == "assistant" and not item.get("is_demo")]

    def _step(self, index: int, step: Mapping[str, JSON], position: int | None = None) -> None:
        if position is None:
            position = self._find(step)
        message = self.history[position] if position is not None else {}
        seen = view(message)
        said = step.get("response") if isinstance(step.get("response"), str) else seen.text
        origin = f"trajectory {index}" if "observation" in step else f"history {position}"
        messages, fidelity = self._sent(step, position)
        thinking = "\n".join(text(mapping(item).get("thinking")) for item in items(message.get("thinking_blocks")))
        self.builder.model_call(
            messages,
            step=index,
            fidelity=fidelity,
            text=text(said) or None,
            reasoning=thinking or None,
            tool_calls=seen.tool_calls,
            origin=origin,
            extra=without_nulls({"thought": step.get("thought"), "extra_info": step.get("extra_info") or None}),
            **self.fields,
        )
        self._act(index, step, seen.tool_calls, position, origin)

    def _sent(self, step: Mapping[str, JSON], position: int | None) -> tuple[Sequence[JSON], Fidelity]:
        """Return the messages of a step's request, and whether they are a record of it."""
        query = step.get("query")
        if isinstance(query, list):
            self.recorded = True
            return query, Fidelity.RECORDED
        copy = step.get("messages")
        if isinstance(copy, list):  # the history after the step: what precedes its last completion was sent
            spoken = [index for index, item in enumerate(copy) if mapping(item).get("role") == "assistant"]
            return copy[: spoken[-1] if spoken else len(copy)], Fidelity.REBUILT
        return self.history[: self.next if position is None else position], Fidelity.REBUILT

    def _find(self, step: Mapping[str, JSON]) -> int | None:
        """Return where the step's completion is in the history, looking on from the step before."""
        for position in range(self.next, len(self.history)):
            message = self.history[position]
            if message.get("role") != "assistant" or message.get("is_demo"):
                continue
            if step.get("response") in (message.get("content"), view(message).text) or (
                step.get("action") and step.get("action") == message.get("action")
            ):
                self.next = position + 1
                return position
        return None

    def _act(
        self, index: int, step: Mapping[str, JSON], calls: Sequence[ToolRequest], position: int | None, origin: str
    ) -> None:
        """Append the tool call of a step's action, or the harness's reply to a completion without one."""
        answer = self._answer(position)
        shown = view(answer).text if answer else None
        action, produced = step.get("action"), step.get("observation", shown)
        extra = without_nulls({"state": _opened(step.get("state")), "execution_time": step.get("execution_time")})
        if not action and not calls:
            self.builder.add(HarnessAction(name="no action", detail=produced, step=index, origin=origin, extra=extra))
            return
        for emitted, request in enumerate(calls or [ToolRequest("bash", {"command": action})]):
            self.builder.add(
                tool_call(
                    request,
                    step=index,
                    origin=origin,
                    emitted=emitted,
                    result=produced if emitted == 0 else None,
                    seen=shown if shown != produced and emitted == 0 else None,
                    has_result=produced is not None and emitted == 0,
                    latency=number(step.get("execution_time")),
                    extra={**extra, "action": action} if calls and action else extra,
                )
            )

    def _answer(self, position: int | None) -> Mapping[str, JSON]:
        """Return the message after a completion, which is the observation as the model saw it."""
        if position is None or position + 1 >= len(self.history):
            return {}
        message = self.history[position + 1]
        return {} if message.get("role") == "assistant" else message


def _opened(value: JSON) -> JSON:
    """Read JSON that is kept as text; other text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value)
    except ValueError:
        return value


def _config(run: Mapping[str, JSON], report: Report) -> Mapping[str, JSON]:
    opened = _opened(run.get("replay_config"))
    if isinstance(opened, str):
        report.skip("replay_config", "text that is not JSON")
    return mapping(opened)


def _model(config: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return mapping(mapping(config.get("agent")).get("model"))


def _outcome(run: Mapping[str, JSON], info: Mapping[str, JSON]) -> tuple[Outcome, str | None]:
    """Return how the run ended: a submission has no verdict, and no status means that it didn't reach its end."""
    if "info" not in run:
        return Outcome.UNKNOWN, None
    status = text(info.get("exit_status"))
    found = _STATUS.fullmatch(status.strip())
    if not status:
        return Outcome.INTERRUPTED, "no exit status: the run did not reach its end"
    if found is None:
        return Outcome.UNKNOWN, status
    return _ENDS.get(found.group(1), Outcome.UNKNOWN), None if status == "submitted" else status


def _manifest(run: Mapping[str, JSON], info: Mapping[str, JSON], config: Mapping[str, JSON]) -> Manifest:
    agent, model = mapping(config.get("agent")), _model(config)
    deployment = mapping(mapping(config.get("env")).get("deployment"))
    place = text(run.get("environment"))
    case = text(mapping(config.get("problem_statement")).get("id")) or (place if place not in _PLACES else "")
    templates, bundles = mapping(agent.get("templates")), items(mapping(agent.get("tools")).get("bundles"))
    observing = {key: value for key, value in templates.items() if "next_step" in key or "observation" in key}
    for key in ("history_processor", "history_processors"):
        observing |= {key: agent[key]} if key in agent else {}
    arguments = mapping(model.get("completion_kwargs"))
    return Manifest.of(
        {
            "harness.name": NAME,
            "harness.revision": info.get("swe_agent_hash") or info.get("swe_agent_version"),
            "panel.case": case or None,
            "budgets.steps": model.get("per_instance_call_limit") or None,
            "budgets.cost": model.get("per_instance_cost_limit") or None,
            "model.name": model.get("name"),
            "sampling.temperature": model.get("temperature"),
            "sampling.top_p": model.get("top_p"),
            "sampling.stop": model.get("stop"),
            "sampling.other": without_nulls(arguments, "seed") or None,
            "seeds.seed": arguments.get("seed"),
            "environment.image": deployment.get("image"),
            "tools.schemas": digest(bundles) if bundles else None,  # where they come from: they aren't kept
            "processing.observation": observing or None,
        },
        unknown=_UNKNOWN,
        reasons={"seeds.seed": "no seed in the recorded configuration"} if config else {},
    )


def _replayability(manifest: Manifest, *, recorded: bool) -> tuple[Replayability, str]:
    needed = ("panel.case", "harness.revision", "model.name", "environment.image")
    absent = [name for name in needed if manifest.value(name) is None]
    requests = "responses are kept as text only" if recorded else "requests are rebuilt from the history"
    if absent:
        return Replayability.VIEW_ONLY, f"harness: not stated: {', '.join(absent)}; model: {requests}"
    return Replayability.LIVE, f"model: {requests}"
