"""The events of an Inspect sample as events of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import LimitExceeded
from harnesslab.core.trace.events import Fidelity, HarnessAction, MemoryAccess, SubagentCall, ToolCall, UserTurn
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.core.trace.usage import inspect as usage_of
from harnesslab.formats.inspect.messages import Pools, requests, sent, spoken
from harnesslab.formats.inspect.scores import verification
from harnesslab.formats.inspect.spans import Spans
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, seconds, text

_MAX_NESTING = 20
_MAX_CHANGES = 2_000_000
"""Most messages that the calls of a sample may add to those of their previous call, all together."""
_COMMON = {"event", "timestamp", "working_start", "span_id", "uuid", "pending"}
_HELD_ELSEWHERE = ("/messages", "/output")


@dataclass(slots=True)
class SampleReader:
    """Appends the events of one sample to a trace."""

    builder: TraceBuilder
    pools: Pools
    began: datetime | None = None
    step: int = -1
    models: int = 0
    unrecorded: int = 0
    """Model calls whose request or response is not in the log."""
    scored: bool = False
    tools: JSON = None
    _spans: Spans = field(default_factory=Spans)
    _emitted: dict[str, int] = field(default_factory=dict)
    _changes_made: int = 0

    def read(self, events: Iterable[JSON], agent: str = "", depth: int = 0, where: str = "event") -> None:
        """Append events in their order; the events that older logs nest in a tool or subtask follow it."""
        for position, item in enumerate(events):
            event = mapping(item)
            origin = f"{where} {position}"
            path = self._spans.agent(event, agent)
            nested = items(event.get("events")) if depth < _MAX_NESTING else []
            name = text(event.get("name")) or text(event.get("function")) or "subtask"
            child = self._spans.child(path, name) if _has_model(nested) else path
            if event.get("event") == "subtask":
                self._subtask(event, path, child, origin)
            else:
                self._add(event, path, origin)
                if child != path:
                    self.builder.add(SubagentCall(name=name, child=child, **self._common(event, path, origin)))
            self.read(nested, child, depth + 1, f"{origin} event")

    def _add(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        match event.get("event"):
            case "model":
                self._model(event, agent, origin)
            case "tool":
                self._tool(event, agent, origin)
            case "score":
                self._score(event, agent, origin)
            case "span_begin":
                self._begin(event, agent, origin)
            case "step":
                self._step(event, agent)
            case "store" | "state":
                self._changes(event, agent, origin)
            case "input":
                content = self.pools.resolve(event.get("input"))
                self.builder.add(UserTurn(content=content, simulated=False, **self._common(event, agent, origin)))
            case "sample_init" | "span_end":
                pass
            case str(name):
                detail = {key: value for key, value in event.items() if key not in _COMMON}
                action = HarnessAction(
                    name=name, detail=self.pools.resolve(detail), **self._common(event, agent, origin)
                )
                self.builder.add(action)

    def _common(self, event: Mapping[str, JSON], agent: str, origin: str) -> dict[str, Any]:
        return {
            "step": max(self.step, 0),
            "agent": agent,
            "at": seconds(self.began, instant(event.get("timestamp"))),
            "origin": origin,
        }

    def _model(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        self.step += 1
        self.models += 1
        output = mapping(self.pools.resolve(event.get("output")))
        choices = objects(output.get("choices"))
        request = sent(self.pools.request(event))
        tools = request.tools if request else (self.pools.resolve(event.get("tools")) or None)
        self.tools = self.tools or tools
        recorded = request is not None or bool(event.get("input") or event.get("input_refs"))
        self.unrecorded += not (recorded and (choices or event.get("error")))
        config = not_empty(mapping(event.get("config")))
        facts = {key: event.get(key) for key in ("role", "retries", "cache", "pending")}
        made = self.builder.model_call(
            request.messages if request else self.pools.input(event),
            tools=tools,
            model=text(event.get("model")),
            fidelity=Fidelity.RECORDED if recorded else Fidelity.REBUILT,
            settings=request.settings if request else _settings(event, config),
            error=_error(event.get("error")) or _error(output.get("error")),
            served_from_cache={"read": True, "write": False}.get(text(event.get("cache"))),
            latency=_latency(event, output),
            usage=usage_of(output.get("usage")),
            extra=not_empty(
                {
                    **facts,
                    "config": config if request else None,
                    "headers": request.headers if request else None,
                    "served_model": output.get("model"),
                    "further_choices": choices[1:],
                }
            ),
            **_answer(choices[0] if choices else {}),
            **_response(self.pools.resolve(mapping(event.get("call")).get("response"))),
            **self._common(event, agent, origin),
        )
        self._changes_made += len(made.input.add)
        if self._changes_made > _MAX_CHANGES:
            raise LimitExceeded(f"model calls that change more than {_MAX_CHANGES:,} messages", where=origin)
        self._emitted |= {asked.id: place for place, asked in enumerate(made.tool_calls) if asked.id}

    def _tool(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        error = mapping(event.get("error"))
        arguments, known = event.get("arguments"), text(event.get("id"))
        failed = event.get("failed") is True or bool(error)
        self.builder.add(
            ToolCall(
                name=text(event.get("function")) or "unnamed",
                arguments=None if isinstance(arguments, str) else self.pools.resolve(arguments),
                raw=arguments if isinstance(arguments, str) else None,
                id=known,
                result=self.pools.resolve(event.get("result")),
                has_result="result" in event and event.get("pending") is not True,
                error=_error(error) or ("failed" if failed else None),
                timed_out=error.get("type") == "timeout",
                emitted=self._emitted.get(known),
                latency=number(event.get("working_time")) or _took(event),
                extra=not_empty({"truncated": event.get("truncated"), "agent": event.get("agent")}),
                **self._common(event, agent, origin),
            )
        )

    def _score(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        intermediate = event.get("intermediate") is True
        self.scored = self.scored or not intermediate
        self.builder.add(
            verification(
                self.pools.resolve(event.get("score")),
                agent.removeprefix("scorer/") if agent.startswith("scorer/") else "score",
                extra=not_empty({"target": event.get("target"), "intermediate": intermediate or None}),
                **self._common(event, "", origin),
            )
        )

    def _begin(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        kind, name, spans = text(event.get("type")), text(event.get("name")) or "unnamed", self._spans
        parent = text(event.get("parent_id"))
        path, inner = spans.paths.get(parent, agent if not parent else ""), spans.inner.get(parent, False)
        if kind == "agent" and inner:
            child = spans.child(path, name)
            self.builder.add(SubagentCall(name=name, child=child, **self._common(event, path, origin)))
            path = child
        elif kind == "scorer":
            path = spans.child(path, f"scorer/{name}")
        spans.paths[text(event.get("id"))] = path
        spans.inner[text(event.get("id"))] = inner or kind in ("agent", "tool")

    def _step(self, event: Mapping[str, JSON], agent: str) -> None:
        """Follow the steps of old logs; an end closes the innermost one."""
        if event.get("action") != "begin":
            if self._spans.stack:
                self._spans.stack.pop()
        else:
            name = text(event.get("name")) or "unnamed"
            scorer = event.get("type") == "scorer"
            self._spans.stack.append(self._spans.child(agent, f"scorer/{name}") if scorer else agent)

    def _subtask(self, event: Mapping[str, JSON], agent: str, child: str, origin: str) -> None:
        self.builder.add(
            SubagentCall(
                name=text(event.get("name")) or "subtask",
                child=child if child != agent else "",
                input=self.pools.resolve(event.get("input")),
                output=self.pools.resolve(event.get("result")),
                **self._common(event, agent, origin),
            )
        )

    def _changes(self, event: Mapping[str, JSON], agent: str, origin: str) -> None:
        """Keep changes of the store as memory, and others but those of messages, which the model calls hold."""
        kept: list[JSON] = []
        for change in objects(event.get("changes")):
            path = text(change.get("path"))
            if event.get("event") == "store":
                value = self.pools.resolve(change.get("value"))
                operation = text(change.get("op")) or "change"
                self.builder.add(
                    MemoryAccess(operation=operation, key=path, value=value, **self._common(event, agent, origin))
                )
            elif not path.startswith((*_HELD_ELSEWHERE, "/store")):
                kept.append(self.pools.resolve(change))
        if kept:
            self.builder.add(
                HarnessAction(name="state", detail={"changes": kept}, **self._common(event, agent, origin))
            )


def _settings(event: Mapping[str, JSON], config: Mapping[str, JSON]) -> dict[str, JSON]:
    choice = event.get("tool_choice")
    return {**config, **({"tool_choice": choice} if choice is not None else {})}


def _answer(choice: Mapping[str, JSON]) -> dict[str, Any]:
    """Return the output fields of a model call from the choice that was taken."""
    message = mapping(choice.get("message"))
    said, thought = spoken(message)
    return {
        "text": said,
        "reasoning": thought,
        "tool_calls": requests(message),
        "finish_reason": text(choice.get("stop_reason")) or None,
        **_logprobs(choice),
    }


def _response(response: JSON) -> dict[str, Any]:
    given = mapping(response)
    return {
        "raw_response": response,
        "response_id": text(given.get("id")) or None,
        "fingerprint": text(given.get("system_fingerprint")) or None,
    }


def _latency(event: Mapping[str, JSON], output: Mapping[str, JSON]) -> float | None:
    for value in (mapping(event.get("call")).get("time"), output.get("time"), event.get("working_time")):
        if (found := number(value)) is not None:
            return found
    return _took(event)


def _took(event: Mapping[str, JSON]) -> float | None:
    return seconds(instant(event.get("timestamp")), instant(event.get("completed")))


def _error(error: JSON) -> str | None:
    if isinstance(error, str):
        return error or None
    given = mapping(error)
    return ": ".join(filter(None, (text(given.get("type")), text(given.get("message"))))) or None


def _logprobs(choice: Mapping[str, JSON]) -> dict[str, Any]:
    tokens = objects(mapping(choice.get("logprobs")).get("content"))
    values = [number(token.get("logprob")) for token in tokens]
    if not values or any(value is None or math.isnan(value) for value in values):
        return {}
    found: dict[str, Any] = {"logprobs": tuple(value for value in values if value is not None)}
    if any(token.get("top_logprobs") for token in tokens):
        found["alternatives"] = tuple(token.get("top_logprobs") for token in tokens)
    return found


def _has_model(events: Iterable[JSON]) -> bool:
    return any(mapping(event).get("event") in ("model", "subtask") for event in events)
