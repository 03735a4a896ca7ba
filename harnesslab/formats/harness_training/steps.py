"""The `steps.jsonl` of a harness-training rollout: one JSON line per attempt, action and rule, in file order.

A message is written whole at its first use, with a short digest, and by that digest alone afterwards; so is the
set of tools. Both are put back here, in file order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import Fidelity, HarnessAction, ModelCall, ToolCall, ToolRequest, Verification
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.core.trace.usage import harness_training as usage_of
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.reading.values import flag, items, mapping, not_empty, number, objects, text, whole

RULES = ("context_window_retrimmed", "observation_clipped", "context_groups_dropped")
"""Events of the harness that are named rules by themselves."""
_KNOWN = {"event", "t_sec", "step_index"}


@dataclass(slots=True)
class StepsReader:
    """Turns the lines of one file into events of one trace."""

    builder: TraceBuilder
    report: Report
    where: str
    model: str = ""
    settings: Mapping[str, JSON] = field(default_factory=dict)
    actions: Sequence[Mapping[str, JSON]] = ()
    """What the environment was asked to do, in order, from the determinism chain; empty where there is none."""
    verifier_output: str | None = None
    gaps: int = 0
    """Messages whose content is not in the file."""
    rules: set[str] = field(default_factory=set)
    finished: bool = False
    """Whether a line says that the episode is over."""
    verdict: bool | None = None
    _turn: int = -1
    _step_index: JSON = None
    _done: int = 0
    _calls: list[Mapping[str, JSON]] = field(default_factory=list)
    _asked: int = 0
    _last_call: int | None = None
    _shown: int = 0
    _pending: list[int] = field(default_factory=list)
    _messages: dict[str, JSON] = field(default_factory=dict)
    _tools: dict[str, JSON] = field(default_factory=dict)

    def read(self, lines: Iterable[tuple[int, Mapping[str, JSON]]]) -> None:
        """Append the events of all lines."""
        rows = list(lines)
        completed = sum(row.get("event") == "step_completed" for _, row in rows)
        if self.actions and len(self.actions) != completed:
            self.report.skip(self.where, f"{len(self.actions)} recorded actions for {completed} steps: not matched")
            self.actions = ()
        for number_, row in rows:
            self._event(row, f"{self.where} line {number_}")

    def _event(self, row: Mapping[str, JSON], origin: str) -> None:
        match row.get("event"):
            case "completion_received":
                self._completion(row, origin)
            case "step_completed":
                self._step(row, origin)
            case "completion_rejected" | "action_parse_failed" as name:
                self._rejection(name, row, origin)
            case "policy_rule":
                self._rule(row, origin)
            case str(name):
                self._action(name, name if name in RULES else None, row, origin)
            case _:
                self.report.skip(origin, "the line names no event")

    def _common(self, row: Mapping[str, JSON], origin: str) -> dict[str, Any]:
        step_index = row.get("step_index")
        return {
            "step": max(self._turn, 0),
            "at": number(row.get("t_sec")),
            "origin": origin,
            "extra": {} if step_index is None else {"step_index": step_index},
        }

    def _completion(self, row: Mapping[str, JSON], origin: str) -> None:
        attempt = whole(row.get("attempt_index")) or 0
        if attempt == 0 or row.get("step_index") != self._step_index:
            self._turn += 1
        self._step_index = row.get("step_index")
        messages = [self._message(item, origin) for item in items(row.get("request_messages"))]
        self._show(messages)
        done, common = mapping(row.get("completion")), self._common(row, origin)
        common |= _started(common["at"], number(row.get("llm_latency_sec")))
        self._calls, self._asked = objects(done.get("calls")), 0
        response = mapping(done.get("response"))
        common["extra"] |= not_empty(
            {"argument_errors": [call["args_error"] for call in self._calls if "args_error" in call]}
        )
        self.builder.model_call(
            messages,
            tools=self._tool_schemas(row.get("request_tools"), origin),
            model=text(response.get("model")) or self.model,
            fidelity=Fidelity.RECORDED,
            settings=dict(self.settings),
            text=text(done.get("content")) or None,
            reasoning=text(done.get("reasoning_content")) or None,
            tool_calls=tuple(_request(call) for call in self._calls),
            finish_reason=text(done.get("finish_reason")) or None,
            usage=usage_of(done.get("usage")),
            attempt=attempt,
            served_from_cache=flag(done.get("served_from_cache")),
            response_id=text(response.get("id")) or None,
            fingerprint=text(response.get("system_fingerprint")) or None,
            raw_response=done.get("response"),
            **common,
        )
        self._last_call = len(self.builder.events) - 1

    def _message(self, item: JSON, origin: str) -> JSON:
        """Put a message back: whole at its first use, by its digest afterwards."""
        given = mapping(item)
        sha = text(given.get("sha"))
        if not sha:
            return item
        body = {key: value for key, value in given.items() if key != "sha"}
        if set(body) <= {"role"}:
            if sha in self._messages:
                return self._messages[sha]
            self.gaps += 1
            self.report.skip(origin, f"the message {sha} is not in the file; a placeholder stands for it")
            return {**body, "content": f"[the message {sha} is not in the file]", "missing_sha": sha}
        self._messages[sha] = body
        return body

    def _tool_schemas(self, given: JSON, origin: str) -> JSON:
        held = mapping(given)
        sha = text(held.get("sha"))
        if "tools" in held:
            if sha:
                self._tools[sha] = held["tools"]
            return held["tools"]
        if sha and sha not in self._tools:
            self.gaps += 1
            self.report.skip(origin, f"the tools {sha} are not in the file")
        return self._tools.get(sha) if sha else (given if isinstance(given, list) else None)

    def _show(self, messages: Sequence[JSON]) -> None:
        """Give each result of the last turn the form in which this request shows it to the model."""
        shown = [
            mapping(item).get("content") for item in messages[self._shown :] if mapping(item).get("role") == "tool"
        ]
        if len(shown) == len(self._pending):
            for position, content in zip(self._pending, shown, strict=True):
                self.builder.events[position] = msgspec.structs.replace(self.builder.events[position], seen=content)
        self._shown, self._pending = len(messages), []

    def _step(self, row: Mapping[str, JSON], origin: str) -> None:
        result, common = mapping(row.get("step_result")), self._common(row, origin)
        output = result.get("raw_env_output")
        name, arguments, raw, extra = self._asked_for(whole(row.get("call_index")))
        chain = self.actions[self._done] if self.actions else {}
        self._done += 1
        common["extra"] |= not_empty(
            {**extra, **{key: result.get(key) for key in ("reward", "terminated", "truncated", "info", "metrics")}}
        )
        self.builder.add(
            ToolCall(
                name=name,
                arguments=arguments,
                raw=raw,
                result=output,
                has_result=row.get("step_result") is not None,
                exit_code=whole(mapping(output).get("exit_code")),
                timed_out=chain.get("timed_out") is True,
                emitted=whole(row.get("call_index")),
                **common,
            )
        )
        self._pending.append(len(self.builder.events) - 1)
        self.finished = self.finished or row.get("terminal") is True
        if result.get("verdict") is not None:
            self._verify(result, row, origin)

    def _asked_for(self, call_index: int | None) -> tuple[str, JSON, str | None, dict[str, JSON]]:
        """Say which action a finished step was: (tool, arguments, argument text, further facts)."""
        if self.actions:
            action = mapping(self.actions[self._done].get("action"))
            call = self._calls[self._asked] if self._asked < len(self._calls) else None
            if call is not None and _is_action(call, action):
                self._asked += 1
                return *_parts(call), {}
            arguments = {key: value for key, value in action.items() if key != "kind"}
            return text(action.get("kind")) or "unnamed", arguments, None, {"added_by_harness": True}
        if call_index is not None and call_index < len(self._calls):
            return *_parts(self._calls[call_index]), {}
        return "unnamed", None, None, {"not_recorded": "the file doesn't say which action this was"}

    def _verify(self, result: Mapping[str, JSON], row: Mapping[str, JSON], origin: str) -> None:
        verdict = mapping(result.get("verdict"))
        passed = flag(verdict.get("passed"))
        self.verdict = passed
        self.builder.add(
            Verification(
                passed=passed,
                reward=number(result.get("reward")),
                output=self.verifier_output,
                error=text(verdict.get("error")) or None,
                scores={"completed": verdict["completed"]} if "completed" in verdict else {},
                **self._common(row, origin),
            )
        )

    def _rejection(self, name: str, row: Mapping[str, JSON], origin: str) -> None:
        """Note a refused completion on its model call, and as an action of the harness."""
        why = ": ".join(filter(None, (text(row.get(key)) for key in ("error", "reason", "detail")))) or name
        if self._last_call is not None:
            call = self.builder.events[self._last_call]
            if isinstance(call, ModelCall) and call.rejected is None:
                self.builder.events[self._last_call] = msgspec.structs.replace(call, rejected=why)
        self._action(name, None, row, origin)

    def _rule(self, row: Mapping[str, JSON], origin: str) -> None:
        rule = text(row.get("rule"))
        if rule:
            self.rules.add(rule)
        self._action("policy_rule", rule if row.get("fired") is not False and rule else None, row, origin)

    def _action(self, name: str, mechanism: str | None, row: Mapping[str, JSON], origin: str) -> None:
        detail = {key: value for key, value in row.items() if key not in _KNOWN}
        self.builder.add(
            HarnessAction(name=name, mechanism=mechanism, detail=detail or None, **self._common(row, origin))
        )


def _started(received: float | None, latency: float | None) -> dict[str, Any]:
    """Return when a call began: the file writes when its answer came."""
    if received is None or latency is None:
        return {"latency": latency}
    return {"latency": latency, "at": round(max(received - latency, 0.0), 6)}


def _request(call: Mapping[str, JSON]) -> ToolRequest:
    name, arguments, raw = _parts(call)
    return ToolRequest(name=name, arguments=arguments, raw=raw, id=text(call.get("id")))


def _parts(call: Mapping[str, JSON]) -> tuple[str, JSON, str | None]:
    raw = call.get("raw_arguments")
    return text(call.get("name")) or "unnamed", call.get("args"), raw if isinstance(raw, str) else None


def _is_action(call: Mapping[str, JSON], action: Mapping[str, JSON]) -> bool:
    """Say whether an executed action is what a tool call asked for."""
    if action.get("kind") == "verify":
        return call.get("name") in ("submit", "verify", "finish", "done")
    arguments = mapping(call.get("args"))
    return "command" not in action or arguments.get("command") == action.get("command")
