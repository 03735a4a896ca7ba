"""How a Claude Code session's file hangs together with those beside it: copied prefixes, and sub-agents' files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.inputs import JsonLine, Unit
from harnesslab.formats.reading.rows import stem
from harnesslab.formats.reading.siblings import Siblings, siblings_of
from harnesslab.formats.reading.values import items, mapping, text


def copied_lines(unit: Unit, name: str, lines: Sequence[JsonLine]) -> dict[int, str]:
    """Return by line number the session that a line was copied from: where it says so, or where that file has it."""
    found = {line.number: _forked_from(line.value) for line in lines if _forked_from(line.value)}
    siblings = siblings_of(unit)
    first = next((text(line.value.get("uuid")) for line in lines if line.value.get("uuid")), "")
    if siblings is None or found or not first:
        return found
    for path, head in siblings.heads().items():
        if any(row.get("uuid") == first for row in head) and PurePosixPath(path).name != unit.name:
            found |= _shared(name, stem(unit), lines, siblings.lines(path), PurePosixPath(path).stem)
    return found


def _forked_from(row: Mapping[str, JSON]) -> str:
    return text(mapping(row.get("forkedFrom")).get("sessionId"))


def _shared(name: str, own: str, lines: Sequence[JsonLine], others: Sequence[JsonLine], other: str) -> dict[int, str]:
    """Return the lines that were copied from another file; none where the other copied them from this one."""
    theirs = {text(line.value.get("uuid")): line for line in others} | {"": None}
    session = next((text(line.value.get("sessionId")) for line in reversed(others) if line.value.get("sessionId")), "")
    if not session or (session == name and own == name):
        return {}
    shared = [line for line in lines if theirs.get(text(line.value.get("uuid")))]
    ours = {text(line.value.get("uuid")) for line in lines}
    if session == name:
        # the same session, once in its own file and once in that of the session that goes on with it
        return dict.fromkeys((line.number for line in shared), name) if other == name != own else {}
    after, before = (
        [text(line.value.get("timestamp")) for line in rows if text(line.value.get("uuid")) not in known]
        for rows, known in ((lines, theirs), (others, ours | {""}))
    )
    if not after or (before and min(before) > min(after)):
        return {}
    return dict.fromkeys((line.number for line in shared), session)


def subagent_files(unit: Unit, name: str) -> dict[str, str]:
    """Return by agent id the files beside a session's that hold its sub-agents."""
    siblings = siblings_of(unit)
    heads = siblings.heads() if siblings is not None else {}
    found: dict[str, str] = {}
    for path, head in heads.items():
        row = head[0] if head else {}
        agent = text(row.get("agentId"))
        own = row.get("isSidechain") is True and row.get("sessionId") == name
        if own and agent and PurePosixPath(path).name != unit.name:
            found[agent] = PurePosixPath(path).name
    return found


def spawned_by(unit: Unit, name: str, agent: str) -> dict[str, JSON]:
    """Return the session and call that began the sub-agent whose file this is, the call where its file is beside."""
    found: dict[str, JSON] = {"session": name} if name else {}
    siblings = siblings_of(unit)
    if siblings is None or not agent:
        return found
    for path, head in siblings.heads().items():
        mains = [row for row in head if row.get("sessionId") == name and not row.get("isSidechain")]
        if mains and PurePosixPath(path).name != unit.name:
            call, line = _spawning(siblings, path, agent)
            if call:
                return {**found, "call": call, "file": PurePosixPath(path).name, "line": line}
    return found


def _spawning(siblings: Siblings, path: str, agent: str) -> tuple[str, int]:
    for line in siblings.lines(path):
        if text(mapping(line.value.get("toolUseResult")).get("agentId")) != agent:
            continue
        for block in items(mapping(line.value.get("message")).get("content")):
            if call := text(mapping(block).get("tool_use_id")):
                return call, line.number
    return "", 0
