"""From OpenAI Responses items to events, for the formats that keep them: response logs and Codex sessions.

What a model puts out in one response is a run of items; a run ends where a tool's output or a person's message
comes, or where a new thought follows a call. Only the run's end is certain where the source keeps no response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.events import HarnessAction, ToolRequest, UserTurn
from harnesslab.core.trace.messages import parse_arguments, text_of, view
from harnesslab.core.trace.parts import parts_of
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.transcript import Transcript, tool_call
from harnesslab.formats.reading.values import mapping, text, without_nulls

SERVED = ("web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call")
"""Calls that the provider carries out itself; their results, if any, are in the call's own item."""


@dataclass(slots=True)
class ResponseOutput:
    """What one response says, read from its items together."""

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    calls: list[ToolRequest] = field(default_factory=list)
    served: list[tuple[ToolRequest, Mapping[str, JSON]]] = field(default_factory=list)

    @property
    def fields(self) -> dict[str, Any]:
        """The output fields of the model call."""
        requests = (*self.calls, *(request for request, _ in self.served))
        return {
            "text": self.text,
            "reasoning": self.reasoning,
            "refusal": self.refusal,
            "tool_calls": requests,
        }


def kind_of(item: Mapping[str, JSON]) -> str:
    """Say what an item is: `call`, `answer`, `thought`, `said` by the model, `asked` by anyone else, or `other`."""
    kind = text(item.get("type"))
    if kind.endswith("_call"):
        return "call"
    if kind.endswith("_output") or kind == "tool_result":
        return "answer"
    if kind == "reasoning":
        return "thought"
    if "role" in item:
        return "said" if item.get("role") == "assistant" else "asked"
    return "other"


def output_of(items: Sequence[Mapping[str, JSON]]) -> ResponseOutput:
    """Read the items of one response together."""
    found, texts, thoughts = ResponseOutput(), list[str](), list[str]()
    for item in items:
        match kind_of(item):
            case "call" if item.get("type") in SERVED:
                found.served.append((_request(item), item))
            case "call":
                found.calls.append(_request(item))
            case "thought":
                thoughts.append(view({**item, "type": "reasoning"}).reasoning)
            case _:
                content = item.get("content")
                parts = content if isinstance(content, list) else []
                refusals = [text(mapping(part).get("refusal")) for part in parts if "refusal" in mapping(part)]
                found.refusal = "\n".join(refusals) or found.refusal
                texts.append(text_of([p for p in parts if "refusal" not in mapping(p)] if parts else content))
    found.text = "\n".join(part for part in texts if part) or None
    found.reasoning = "\n".join(part for part in thoughts if part) or None
    return found


def _request(item: Mapping[str, JSON]) -> ToolRequest:
    """Read a call of any kind: its name, or else its type, and its arguments, input or action."""
    function = mapping(item.get("function"))
    without_nulls = next(
        (item[key] for key in ("arguments", "input", "action") if key in item), function.get("arguments")
    )
    arguments, raw = parse_arguments(without_nulls)
    if item.get("type") == "custom_tool_call" and arguments is None:
        arguments = raw  # free text by its kind, not broken JSON
    name = text(item.get("name")) or text(function.get("name")) or text(item.get("type"))
    return ToolRequest(name, arguments, raw, text(item.get("call_id")) or text(item.get("id")))


def _token_ids(items: Sequence[Mapping[str, JSON]]) -> dict[str, Any]:
    """Return the token ids that a training server writes beside one of a response's items."""
    found: dict[str, Any] = {}
    for key, name in (("prompt_token_ids", "prompt_token_ids"), ("generation_token_ids", "token_ids")):
        ids = next((item[key] for item in items if isinstance(item.get(key), list)), None)
        if isinstance(ids, list) and ids and all(type(each) is int for each in ids):
            found[name] = tuple(ids)
    return found


class Walk:
    """Appends events for items as they come, one step for each run of a model's items."""

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder
        self.transcript = Transcript(builder)
        self.call_fields: dict[str, Any] = {}
        """Fields of every model call, such as its name and settings."""
        self.tools: JSON = None
        self.step = -1
        self.last_call: int | None = None
        """Position of the last model call among the events."""
        self.produced: dict[str, list[dict[str, Any]]] = {}
        """By call id, what else is known of the results to come, in the order of the calls: ids may repeat."""
        self.turn_fields: dict[str, Any] = {}
        """Further fields of what a user said, such as who wrote it."""
        self._open: list[Mapping[str, JSON]] = []
        self._at: tuple[float | None, str] = (None, "")
        self._pending: list[tuple[int, int, ToolRequest]] = []
        """Step, position among its calls, and request of each tool call without an output."""
        self._completed: dict[int, int] = {}

    def take(self, item: Mapping[str, JSON], at: float | None = None, origin: str = "") -> None:
        """Append what an item is."""
        kind = kind_of(item)
        if kind in ("call", "said", "thought"):
            if self._open and self._ends(kind):
                self.flush()
            if not self._open:
                self._at = (at, origin)
            self._open.append(item)
            return
        self.flush()
        fields: dict[str, Any] = {"at": at, "origin": origin}
        if kind == "answer":
            self._answer(item, fields)
        elif kind == "asked" and item.get("role") == "user":
            said = {**fields, **self.turn_fields}
            self.builder.add(UserTurn(content=item.get("content"), step=max(self.step, 0), **said))
        else:
            name = text(item.get("role")) or text(item.get("type")) or "item"
            self.builder.add(HarnessAction(name=name, detail=dict(item), step=max(self.step, 0), **fields))
        if kind != "other":
            self.transcript.say(item)

    def _ends(self, kind: str) -> bool:
        """Say whether an item of this kind begins another response than the open one."""
        before = [kind_of(item) for item in self._open]
        return (kind == "thought" and before[-1] != "thought") or (kind == "said" and "call" in before)

    def flush(self) -> None:
        """Append the model call of the open run, if there is one."""
        if not self._open:
            return
        self.step += 1
        found = output_of(self._open)
        at, origin = self._at
        self.last_call = len(self.builder.events)
        fields = {**self.call_fields, **found.fields, **_token_ids(self._open)}
        fields |= {"at": at, "origin": origin, "step": self.step}
        self.transcript.call(tools=self.tools, **fields)
        self.transcript.say(*self._open)
        self._open = []
        self._pending += [(self.step, emitted, request) for emitted, request in enumerate(found.calls)]
        for emitted, (request, item) in enumerate(found.served, start=len(found.calls)):
            result = next((item[key] for key in ("results", "result", "outputs") if item.get(key) is not None), None)
            status = without_nulls({"status": item.get("status")})
            known = {"result": result, "has_result": result is not None, "extra": status, "origin": origin}
            self.builder.add(tool_call(request, emitted=emitted, step=self.step, at=at, **known))

    def _answer(self, item: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append the tool call that an output answers: by its id, else the first that waits."""
        call_id = text(item.get("call_id"))
        step, emitted, request = self._claim(call_id) or (max(self.step, 0), None, ToolRequest("unnamed", id=call_id))
        if emitted is None and text(item.get("name")):
            request = msgspec.structs.replace(request, name=text(item.get("name")))
        shown = next((item[key] for key in ("output", "result", "tools", "content") if key in item), None)
        textual = isinstance(shown, str | list) or "text" in mapping(shown)
        seen = text_of(shown) if textual and not parts_of(shown) else shown
        known = self._produced(request.id)
        result = known.pop("result", seen)
        self.builder.add(
            tool_call(
                request,
                emitted=emitted,
                completed=self._completed.setdefault(step, 0),
                step=step,
                result=result,
                seen=seen if seen != result else None,
                **{**fields, **known},
            )
        )
        self._completed[step] += 1

    def _claim(self, call_id: str) -> tuple[int, int | None, ToolRequest] | None:
        """Remove and return the waiting call with this id, of the latest step's the first; so too without ids."""
        latest = max((step for step, _, request in self._pending if request.id and request.id == call_id), default=None)
        for index, (step, _, request) in enumerate(self._pending):
            if step == latest and request.id == call_id:
                return self._pending.pop(index)
        for index, (step, _, request) in enumerate(self._pending):
            if step == self._pending[-1][0] and not (call_id and request.id):
                return self._pending.pop(index)
        return None

    def amend(self, index: int | None, **changes: Any) -> None:
        """Change fields of an event that is already appended, such as usage that the source states later."""
        if index is not None:
            self.builder.events[index] = msgspec.structs.replace(self.builder.events[index], **changes)

    @property
    def waiting(self) -> set[str]:
        """The ids of the tool calls that have no output yet."""
        return {request.id for _, _, request in self._pending}

    def _produced(self, call_id: str) -> dict[str, Any]:
        """Remove and return what is known of the next result of the calls with this id."""
        known = self.produced.get(call_id)
        return known.pop(0) if known else {}

    def waits(self, call_id: str) -> int:
        """Return how many calls with this id have no output yet."""
        return sum(request.id == call_id for _, _, request in self._pending)

    def close(self) -> None:
        """Append what is still open, and the calls that no output answered."""
        self.flush()
        for step, emitted, request in self._pending:
            known = self._produced(request.id)
            fields = {"has_result": "result" in known, **known}
            self.builder.add(tool_call(request, emitted=emitted, step=step, **fields))
        self._pending = []
