"""How a Codex session hangs together with others: what a fork copied from its parent, and who began a sub-agent.

A fork's file begins with its parent's items, written again under the time of the fork, so that neither time nor any
mark says where its own turns begin. Where the parent's file lies beside it, the longest common beginning does; else
the turn ids, which hold their times, or the first pause before a turn, since a copy is written in one go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.siblings import Siblings, siblings_of
from harnesslab.formats.reading.values import mapping, moment, text

_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_PAUSE = 2.0
"""Seconds before a turn that no copying takes."""
_ITEMS = ("response_item", "compacted")


@dataclass(frozen=True, slots=True)
class CodexKin:
    """What a session says of others."""

    parent: str = ""
    """The session that it was forked from."""
    copied: int = 0
    """Number of its last line that was copied from there; 0 for none."""
    spawned_by: Mapping[str, JSON] | None = None


def kin_of(unit: Unit, lines: Sequence[JsonLine], meta: Mapping[str, JSON], report: Report) -> CodexKin:
    """Find the parent of a session, how far its file repeats it, and the call that began it."""
    siblings = siblings_of(unit)
    parent = text(meta.get("forked_from_id"))
    begun = _spawned_by(siblings, unit, meta)
    if not parent or len(lines) < 2:
        return CodexKin(parent, 0, begun)
    path = _file_of(siblings, unit, parent)
    common = _common(lines, siblings.lines(path)) if siblings is not None and path else 0
    if common:
        return CodexKin(parent, common, begun)
    if not _repeats(lines, meta, parent):
        return CodexKin(parent, 0, begun)
    last, is_seen = _last_copied(lines, text(meta.get("id")))
    if not is_seen:
        said = "nothing says where what it copied from its parent ends: its last turn alone is taken as its own"
        report.remark(f"session {text(meta.get('id'))}", said)
    return CodexKin(parent, last, begun)


def _file_of(siblings: Siblings | None, unit: Unit, session: str) -> str:
    """Return the path of the file that holds a session."""
    for path, head in (siblings.heads() if siblings is not None else {}).items():
        first = next((mapping(row.get("payload")) for row in head if row.get("type") == "session_meta"), {})
        if first.get("id") == session and PurePosixPath(path).name != unit.name:
            return path
    return ""


def _common(lines: Sequence[JsonLine], others: Sequence[JsonLine]) -> int:
    """Return the number of the last line that repeats the parent's, in order; the parent may have gone on since.

    A prompt that both were given, and answered otherwise, is no copy.
    """
    theirs = iter(_said(others))
    last = 0
    for line in lines:
        if line.value.get("type") not in _ITEMS and not _counts(line):
            continue
        if _written(line) != next(theirs, None):
            break
        last = last if mapping(line.value.get("payload")).get("role") == "user" else line.number
    return last


def _said(lines: Sequence[JsonLine]) -> Iterator[str]:
    """Yield what of a session a copy must repeat: its items and token counts."""
    return (_written(line) for line in lines if line.value.get("type") in _ITEMS or _counts(line))


def _counts(line: JsonLine) -> bool:
    payload = mapping(line.value.get("payload"))
    return payload.get("type") == "token_count" and payload.get("info") is not None


def _written(line: JsonLine) -> str:
    payload = mapping(line.value.get("payload"))
    kept = {"info": payload.get("info")} if _counts(line) else payload  # rate limits are of their moment
    return json.dumps([line.value.get("type"), kept], sort_keys=True, default=str)


def _repeats(lines: Sequence[JsonLine], meta: Mapping[str, JSON], parent: str) -> bool:
    """Say whether a fork's file holds its parent's items: its opening line is there too, or another turn is."""
    opened = [mapping(line.value.get("payload")) for line in lines if line.value.get("type") == "session_meta"]
    if any(each.get("id") == parent for each in opened) or _older(lines):
        return True
    return any(_is_older(_turn_id(line), text(meta.get("id"))) for line in lines)


def _last_copied(lines: Sequence[JsonLine], own: str) -> tuple[int, bool]:
    """Return the number of the last copied line, and whether anything shows that it is the last."""
    if older := _older(lines):
        return older, True
    turns = _turn_starts(lines)
    ids = [_turn_id(lines[at]) for at in turns]
    if any(_is_older(each, own) for each in ids):
        mine = (at for at, each in zip(turns, ids, strict=True) if each and not _is_older(each, own))
        at = next(mine, None)
        return (lines[-1].number if at is None else lines[at - 1].number), True
    pauses = list(_pauses(lines))
    for at in turns:
        if pauses[at] >= max(_PAUSE, 3 * max(pauses[:at])):
            return lines[at - 1].number, True
    return (lines[turns[-1] - 1].number if turns else 0), False


def _older(lines: Sequence[JsonLine]) -> int:
    """Return the number of the last line that is older than the fork itself, as a copy that keeps its times is; 0."""
    opened = next((line for line in lines if line.value.get("type") == "session_meta"), None)
    begun = moment(opened.value.get("timestamp")) if opened else None
    times = ((line.number, moment(line.value.get("timestamp"))) for line in lines)
    return max((number for number, at in times if at is not None and begun is not None and at < begun), default=0)


def _pauses(lines: Sequence[JsonLine]) -> Iterator[float]:
    """Yield the seconds between each line and the one before it; 0 where a time is missing."""
    before: float | None = None
    for line in lines:
        here = moment(line.value.get("timestamp"))
        yield here - before if here is not None and before is not None else 0.0
        before = here


def _turn_starts(lines: Sequence[JsonLine]) -> list[int]:
    """Return the positions at which turns begin: after an answer, the first line that is of another turn."""
    starts: list[int] = []
    answered = False
    for at, line in enumerate(lines):
        payload = mapping(line.value.get("payload"))
        asks = payload.get("type") == "message" and payload.get("role") == "user"
        opens = line.value.get("type") == "turn_context" or payload.get("type") in ("task_started", "user_message")
        if answered and (asks or opens):
            starts.append(at)
            answered = False
        answered = answered or (line.value.get("type") == "response_item" and payload.get("role") == "assistant")
    return starts


def _turn_id(line: JsonLine) -> str:
    return text(mapping(line.value.get("payload")).get("turn_id"))


def _is_older(one: str, other: str) -> bool:
    """Say whether an id was made before another, where both hold their time."""
    return bool(_V7.fullmatch(one) and _V7.fullmatch(other) and one < other)


def _spawned_by(siblings: Siblings | None, unit: Unit, meta: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """Return the session, and where its file is beside the call, that began this one as a sub-agent."""
    spawn = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    parent, own = text(spawn.get("parent_thread_id")) or text(meta.get("parent_thread_id")), text(meta.get("id"))
    if not parent:
        return None
    path = _file_of(siblings, unit, parent)
    for line in siblings.lines(path) if siblings is not None and path else ():
        payload = mapping(line.value.get("payload"))
        if call := _spawning_call(payload, own):
            return {"session": parent, "call": call, "file": PurePosixPath(path).name, "line": line.number}
    return {"session": parent}


def _spawning_call(payload: Mapping[str, JSON], session: str) -> str:
    """Return the call that a line says began a session, else an empty id."""
    begun = payload.get("type") == "collab_agent_spawn_end" and payload.get("new_thread_id") == session
    answered = payload.get("type") == "function_call_output" and session in text(payload.get("output"))
    return text(payload.get("call_id")) if session and (begun or answered) else ""


def subagents(unit: Unit, session: str) -> dict[str, str]:
    """Return by session id the files beside a session's that hold the sub-agents it began."""
    siblings = siblings_of(unit)
    found: dict[str, str] = {}
    for path, head in (siblings.heads() if siblings is not None and session else {}).items():
        meta = next((mapping(row.get("payload")) for row in head if row.get("type") == "session_meta"), {})
        spawn = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        if session in (spawn.get("parent_thread_id"), meta.get("parent_thread_id")) and text(meta.get("id")):
            found[text(meta.get("id"))] = PurePosixPath(path).name
    return found
