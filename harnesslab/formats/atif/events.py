"""The steps of an ATIF trajectory, its sub-agents included, as events of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.answers import COPIED
from harnesslab.core.trace.events import HarnessAction, ModelCall, SubagentCall, ToolCall, ToolRequest, UserTurn
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.core.trace.usage import atif as usage_of
from harnesslab.formats.reading.transcript import Transcript
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, seconds, text, whole

_MAX_NESTING = 12
Lookup = Callable[[str], Mapping[str, JSON]]
"""From the path of a trajectory beside this one to its document, or an empty one."""


def _nothing(path: str) -> Mapping[str, JSON]:
    return {}


@dataclass(slots=True)
class TrajectoryReader:
    """Appends trajectories to a trace: the main one, then those that it refers to where it does."""

    builder: TraceBuilder
    began: datetime | None = None
    beside: Lookup = _nothing
    step: int = -1
    missing: list[str] = field(default_factory=list)
    """Sub-agent trajectories that are referred to and not at hand."""
    model: str = ""
    _counts: dict[str, int] = field(default_factory=dict)

    def read(self, document: Mapping[str, JSON], agent: str = "", depth: int = 0) -> None:
        """Append one trajectory's steps, and embedded trajectories that no step refers to."""
        about = mapping(document.get("agent"))
        embedded = {_id(child): child for child in objects(document.get("subagent_trajectories"))}
        walk = _Walk(self, agent, about, embedded, depth)
        steps = items(document.get("steps"))
        talks = any(mapping(step).get("source") == "agent" for step in steps)
        for position, step in enumerate(steps):
            walk.take(mapping(step), f"step {mapping(step).get('step_id', position)}", talks)
        for name, child in embedded.items():
            if name not in walk.used:
                walk.subagent({"trajectory_id": name}, child, None, None, "subagent_trajectories")

    def child_path(self, agent: str, name: str) -> str:
        """Name a new sub-agent; the second of one name gets a number."""
        path = f"{agent}/{name}" if agent else name
        self._counts[path] = self._counts.get(path, 0) + 1
        return path if self._counts[path] == 1 else f"{path}/{self._counts[path]}"


class _Walk:
    """Follows the steps of one trajectory."""

    def __init__(
        self,
        reader: TrajectoryReader,
        agent: str,
        about: Mapping[str, JSON],
        embedded: Mapping[str, Mapping[str, JSON]],
        depth: int,
    ) -> None:
        self.reader = reader
        self.agent = agent
        self.about = about
        self.embedded = embedded
        self.depth = depth
        self.used: set[str] = set()
        self.transcript = Transcript(reader.builder, agent)
        self.tools = items(about.get("tool_definitions")) or None
        self.acted = False

    def take(self, step: Mapping[str, JSON], origin: str, talks: bool) -> None:
        source, message = step.get("source"), step.get("message")
        common = self._common(step, origin)
        if source == "agent":
            self._agent(step, origin)
            return
        if source == "user":
            self.reader.builder.add(UserTurn(content=message, **common))
        elif self.acted or step.get("observation") or not talks:
            self.reader.builder.add(HarnessAction(name="system", detail=message, **common))
        if message not in (None, "", []):
            self.transcript.say({"role": "user" if source == "user" else "system", "content": message})
        self._observe(step, {}, origin)

    def _common(self, step: Mapping[str, JSON], origin: str) -> dict[str, Any]:
        extra = mapping(step.get("extra"))
        if step.get("is_copied_context") is True:
            extra = {**extra, COPIED: True}
        return {
            "step": max(self.reader.step, 0),
            "agent": self.agent,
            "at": seconds(self.reader.began, instant(step.get("timestamp"))),
            "origin": origin,
            "extra": extra,
        }

    def _agent(self, step: Mapping[str, JSON], origin: str) -> None:
        self.acted = True
        self.reader.step += 1
        calls = {call.id or f"call {place}": call for place, call in enumerate(_requests(step))}
        message = step.get("message")
        if step.get("llm_call_count") == 0:
            self.reader.builder.add(
                HarnessAction(name="agent step without a model call", detail=message, **self._common(step, origin))
            )
        else:
            self._model_call(step, tuple(calls.values()), origin)
        said = not_empty({"content": message, "reasoning_content": step.get("reasoning_content")})
        wire: list[JSON] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls.values()
        ]
        self.transcript.say({"role": "assistant", **said, **({"tool_calls": wire} if wire else {})})
        self._observe(step, calls, origin)

    def _model_call(self, step: Mapping[str, JSON], calls: tuple[ToolRequest, ...], origin: str) -> None:
        metrics, common = mapping(step.get("metrics")), self._common(step, origin)
        copied = step.get("is_copied_context") is True
        model = text(step.get("model_name")) or text(self.about.get("model_name"))
        if not self.agent:
            self.reader.model = self.reader.model or model
        common["extra"] = {
            **common["extra"],
            **not_empty(
                {
                    "cost_usd": metrics.get("cost_usd"),
                    "metrics": metrics.get("extra"),
                    "copied_metrics": {key: metrics.get(key) for key in ("prompt_tokens", "completion_tokens")}
                    if copied and metrics
                    else None,
                    "llm_call_count": step.get("llm_call_count"),
                }
            ),
        }
        effort = step.get("reasoning_effort")
        self.transcript.call(
            tools=self.tools,
            model=model,
            settings={} if effort is None else {"reasoning_effort": effort},
            text=text_of(step.get("message")) or None,
            reasoning=text(step.get("reasoning_content")) or None,
            tool_calls=calls,
            usage=None if copied else usage_of(metrics),
            prompt_token_ids=token_ids(metrics.get("prompt_token_ids")),
            token_ids=token_ids(metrics.get("completion_token_ids")),
            logprobs=logprobs(metrics.get("logprobs")),
            finish_reason=text(mapping(metrics.get("extra")).get("finish_reason")) or None,
            **{key: value for key, value in common.items() if key != "agent"},
        )

    def _observe(self, step: Mapping[str, JSON], calls: Mapping[str, ToolRequest], origin: str) -> None:
        """Append tool calls with their results, other observations, and the sub-agents that results refer to."""
        results = objects(mapping(step.get("observation")).get("results"))
        by_call: dict[str, list[Mapping[str, JSON]]] = {}
        loose = []
        for result in results:
            known = text(result.get("source_call_id"))
            if known in calls:
                by_call.setdefault(known, []).append(result)
            else:
                loose.append(result)
        waiting = [known for known in calls if known not in by_call]
        if len(loose) == len(waiting) == 1 and not text(loose[0].get("source_call_id")):
            by_call[waiting[0]] = loose
            loose = []
        for emitted, (known, call) in enumerate(calls.items()):
            self._tool_call(step, call, emitted, by_call.get(known, []), origin)
        for result in loose:
            if "content" in result:
                self.reader.builder.add(
                    HarnessAction(name="observation", detail=result["content"], **self._common(step, origin))
                )
                role = "system" if step.get("source") == "system" else "user"
                self.transcript.say({"role": role, "content": result["content"]})
            self._refer(result, None, origin)

    def _tool_call(
        self, step: Mapping[str, JSON], call: ToolRequest, emitted: int, results: list[Mapping[str, JSON]], origin: str
    ) -> None:
        contents = [result["content"] for result in results if "content" in result]
        common = self._common(step, origin)
        extra = [item for result in results if (item := result.get("extra"))]
        facts = not_empty({"result": extra, "raw_arguments": common["extra"].get("raw_arguments")})
        self.reader.builder.add(
            ToolCall(
                name=call.name,
                arguments=call.arguments,
                raw=call.raw,
                id=call.id,
                result=contents[0] if len(contents) == 1 else list(contents) or None,
                has_result=bool(contents),
                emitted=emitted,
                **{**common, "extra": facts},
            )
        )
        for content in contents:
            self.transcript.say({"role": "tool", "tool_call_id": call.id, "content": content})
        for result in results:
            self._refer(result, call, origin)

    def _refer(self, result: Mapping[str, JSON], call: ToolRequest | None, origin: str) -> None:
        given = result.get("subagent_trajectory_ref")
        for ref in objects(given if isinstance(given, list) else [given]):
            name = text(ref.get("trajectory_id"))
            path = text(ref.get("trajectory_path"))
            child = self.embedded.get(name) or (self.reader.beside(path) if path else {})
            self.used.add(name)
            if not child:
                self.reader.missing.append(path or name or text(ref.get("session_id")))
            self.subagent(ref, child, call, result.get("content"), origin)

    def subagent(
        self,
        ref: Mapping[str, JSON],
        child: Mapping[str, JSON],
        call: ToolRequest | None,
        output: JSON,
        origin: str,
    ) -> None:
        """Append the hand-over to a sub-agent and, where its trajectory is at hand, what it did."""
        path = text(ref.get("trajectory_path"))
        name = text(mapping(child.get("agent")).get("name")) or text(ref.get("trajectory_id"))
        name = name or (PurePosixPath(path).stem if path else "") or text(ref.get("session_id")) or "subagent"
        inner = self.reader.child_path(self.agent, name)
        followed = bool(child) and self.depth < _MAX_NESTING
        self.reader.builder.add(
            SubagentCall(
                name=name,
                child=inner if followed else "",
                input=call.arguments if call else None,
                output=output,
                error=None if child else "its trajectory is not in the file",
                step=max(self.reader.step, 0),
                agent=self.agent,
                origin=origin,
                extra={"ref": dict(ref)},
            )
        )
        if followed:
            self.reader.read(child, inner, self.depth + 1)


def _id(document: Mapping[str, JSON]) -> str:
    return text(document.get("trajectory_id")) or text(document.get("session_id"))


def _requests(step: Mapping[str, JSON]) -> Iterator[ToolRequest]:
    for call in objects(step.get("tool_calls")):
        arguments = call.get("arguments")
        yield ToolRequest(
            name=text(call.get("function_name")) or "unnamed",
            arguments=None if isinstance(arguments, str) else arguments,
            raw=arguments if isinstance(arguments, str) else None,
            id=text(call.get("tool_call_id")),
        )


def token_ids(value: JSON) -> tuple[int, ...] | None:
    """Return token ids where every item is one."""
    found = [whole(item) for item in items(value)]
    return tuple(item for item in found if item is not None) if found and None not in found else None


def logprobs(value: JSON) -> tuple[float, ...] | None:
    """Return log-probabilities where every item is a number."""
    found = [number(item) for item in items(value)]
    return tuple(item for item in found if item is not None) if found and None not in found else None


def model_calls(builder: TraceBuilder, agent: str = "") -> list[int]:
    """Return the positions of an agent's model calls among the events."""
    return [
        place for place, event in enumerate(builder.events) if isinstance(event, ModelCall) and event.agent == agent
    ]
