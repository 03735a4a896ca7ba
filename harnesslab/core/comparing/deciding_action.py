"""What may have decided: the first differing action that an outcome can hang on, a candidate and never a proof."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.core.comparing.alignment import SAME, Relation, Row
from harnesslab.core.comparing.evidence import readable
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, ToolCall
from harnesslab.core.trace.labels import clip, short_arguments

_THINKING = re.compile(r"(?i)todo|think|plan|note|memory|search|read|view|list|get|find|open|show")
_SUBMITS = re.compile(r"(?i)(?:^|_)(?:submit|finish|complete|done|final|answer|exit)")
_EDITS = re.compile(r"(?i)edit|replace|patch|apply|update|modify|delete|remove|rename|insert")
_WRITES = re.compile(
    r"(?i)write|create|save|put|append|move|send|book|cancel|pay|order|transfer|exchange|return|toggle|set_|upload|commit"
)
_SHELLS = re.compile(r"(?i)bash|shell|^sh$|run|exec|terminal|cmd|command|python|ipython|code")
_COMMAND_SUBMITS = re.compile(r"(?:^|[\s;&|])(?:submit\b|echo\s+\"?COMPLETE_TASK|exit\b)")
_COMMAND_EDITS = re.compile(
    r"\bsed\s+(?:-\w+\s+)*-i|\bperl\s+-p?i|\bpatch\b|\bgit\s+(?:apply|commit|checkout|reset|stash)|\bapply_patch\b"
    r"|\bstr_replace\b|(?:^|[;&|\s])edit\s"
)
_COMMAND_WRITES = re.compile(
    r"(?<![0-9&>-])>{1,2}(?!\s*(?:/dev/null|&))\s*\S|\btee\b|(?:^|[\s;&|])(?:cp|mv|rm|mkdir|touch|ln|chmod|dd|create)\s"
    r"|\b(?:pip3?|npm|apt(?:-get)?|cargo|yarn|uv)\s+(?:install|add|i)\b"
    r"|\bopen\([^)]*['\"][wax]b?\+?['\"]|\.write(?:_text|_bytes)?\("
)
_CUT = frozenset({"length", "max_tokens", "max_output_tokens"})
_NOT_ENDED = frozenset({"not_run", "running"})
_VERDICTS = frozenset({"solved", "failed_verification"})
_BROKEN = frozenset({"interrupted", "infra_error", "crash", "verify_timeout"})
_ENDED = frozenset({"step_cap", "timeout", "interrupted", "infra_error", "no_valid_action", "refused", "crash"})


@dataclass(frozen=True, slots=True)
class DecidingAction:
    """A differing action that the outcome could hang on; the step counts from 0."""

    side: str
    step: int
    event: int
    kind: str
    """`write`, `edit`, `submit`, `empty reply` or `cut-off`."""
    what: str


def deciding_action(
    a: TraceReader, b: TraceReader, rows: Sequence[Row], outcomes: tuple[str, str]
) -> DecidingAction | None:
    """Find the first differing action that other outcomes could hang on; None where the outcomes are equal."""
    if outcomes[0] == outcomes[1] or _NOT_ENDED & set(outcomes):
        return None
    if "unknown" in outcomes and _VERDICTS & set(outcomes):
        return None  # one was judged and the other was not, which is no other outcome
    broken = [(side, reader) for side, reader in (("A", a), ("B", b)) if reader.outcome in _BROKEN]
    if len(broken) == 1:
        return _end(*broken[0])
    for row in rows:
        if row.relation in SAME or row.relation is Relation.MOVED:
            continue
        for side, reader, position in (("A", a, row.a), ("B", b, row.b)):
            if position is None:
                continue
            event = reader.event(position)
            kind = _kind(event)
            if kind:
                return DecidingAction(side, event.step, position, kind, readable(_what(event)))
    return None


def _end(side: str, reader: TraceReader) -> DecidingAction | None:
    """Return how a side that was broken off ended, before which nothing could decide."""
    last = len(reader.kinds) - 1
    event = reader.event(last) if last >= 0 else None
    return DecidingAction(side, event.step, last, "cut-off", readable(_what(event))) if event is not None else None


def _kind(event: AnyEvent) -> str:
    match event:
        case ModelCall(error=None):
            if event.finish_reason in _CUT:
                return "cut-off"
            words = event.text or event.reasoning or event.refusal or ""
            silent = not event.tool_calls and not words.strip()
            return "empty reply" if silent and event.rejected is None else ""
        case RolloutEnded():
            return "cut-off" if event.outcome in _ENDED else ""
        case ToolCall():
            return _kind_of_call(event)
    return ""


def _kind_of_call(call: ToolCall) -> str:
    command = short_arguments(call.arguments, call.raw) if _SHELLS.search(call.name) else ""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    for name in ("command", "cmd", "code", "script", "keystrokes"):
        if isinstance(arguments.get(name), str):
            command = str(arguments[name])
    for pattern, kind in ((_COMMAND_SUBMITS, "submit"), (_COMMAND_EDITS, "edit"), (_COMMAND_WRITES, "write")):
        if command and pattern.search(command):
            return kind
    if _SHELLS.search(call.name) and command:
        return ""
    if _SUBMITS.search(call.name):
        return "submit"
    if _THINKING.search(call.name) or command in ("view", "think"):
        return ""
    if _EDITS.search(call.name):
        return "edit"
    return "write" if _WRITES.search(call.name) else ""


def _what(event: AnyEvent) -> str:
    match event:
        case ToolCall():
            return clip(f"{event.name} {short_arguments(event.arguments, event.raw)}", 100)
        case ModelCall():
            return "the model's answer"
        case RolloutEnded():
            return f"it ended by {event.outcome.replace('_', ' ')}"
    return ""
