"""How a Claude Code session's file hangs together with those beside it: copied prefixes, and sub-agents' files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.messages import text_of
from harnesslab.formats.claude_code.replies import content_of, replies_of
from harnesslab.formats.reading.inputs import JsonLine, Unit
from harnesslab.formats.reading.rows import stem
from harnesslab.formats.reading.siblings import siblings_of
from harnesslab.formats.reading.values import items, mapping, text

_FIRST = 20
"""How many of a session's first lines are looked for in others."""
_AGENT = "agent-"
"""How the name of a sub-agent's file begins; its id follows."""


def copied_lines(unit: Unit, name: str, lines: Sequence[JsonLine]) -> dict[int, str]:
    """Return by line number the session that a line was copied from: where it says so, or where that file has it."""
    found = {line.number: _forked_from(line.value) for line in lines if _forked_from(line.value)}
    siblings = siblings_of(unit)
    first = {name for line in lines[:_FIRST] for name in _names(line.value)}
    if siblings is None or found or not first:
        return found | _repeated(name, lines)
    for path, head in siblings.heads().items():
        if any(first & _names(row) for row in head) and PurePosixPath(path).name != unit.name:
            found |= _shared(name, stem(unit), lines, siblings.lines(path), PurePosixPath(path).stem)
    return found | _repeated(name, lines)


def _names(row: Mapping[str, JSON]) -> set[str]:
    """Return what tells a line from all others: its uuid, and a reply's message and request ids together."""
    message, request = text(mapping(row.get("message")).get("id")), text(row.get("requestId"))
    return {text(row.get("uuid")), f"{message} {request}" if message and request else ""} - {""}


def _repeated(name: str, lines: Sequence[JsonLine]) -> dict[int, str]:
    """Return the replies that the session holds again under the same ids, as a resumed one that copied itself does."""
    found: dict[int, str] = {}
    known: dict[str, list[JSON]] = {}
    for number, reply in replies_of(lines).items():
        first = reply.lines[0]
        for ids in _names(first.value) - {text(first.value.get("uuid"))} if number == first.number else ():
            content = content_of(reply)
            if ids in known and known[ids] == content:
                found |= dict.fromkeys((line.number for line in reply.lines), name)
            known.setdefault(ids, content)
    return found


def _forked_from(row: Mapping[str, JSON]) -> str:
    return text(mapping(row.get("forkedFrom")).get("sessionId"))


def _shared(name: str, own: str, lines: Sequence[JsonLine], others: Sequence[JsonLine], other: str) -> dict[int, str]:
    """Return the lines that were copied from another file; none where the other copied them from this one."""
    theirs = {each for line in others for each in _names(line.value)}
    ours = {each for line in lines for each in _names(line.value)}
    session = next((text(line.value.get("sessionId")) for line in reversed(others) if line.value.get("sessionId")), "")
    if not session or (session == name and own == name):
        return {}
    last = max((line.number for line in lines if _names(line.value) & theirs), default=0)
    shared = [line for line in lines if line.number <= last]
    if session == name:
        # the same session, once in its own file and once in that of the session that goes on with it
        return dict.fromkeys((line.number for line in shared), name) if other == name != own else {}
    after, before = (
        [text(line.value.get("timestamp")) for line in _beyond(rows, known)]
        for rows, known in ((lines, theirs), (others, ours))
    )
    # whichever went on by itself first was there first; at one time only one of both may be the copy
    if not after or (before and (min(before), session) > (min(after), name)):
        return {}
    return dict.fromkeys((line.number for line in shared), session)


def _beyond(lines: Sequence[JsonLine], known: set[str]) -> list[JsonLine]:
    """Return the lines after the last that another file has too; those without any name say nothing."""
    last = max((line.number for line in lines if _names(line.value) & known), default=0)
    return [line for line in lines if line.number > last and _names(line.value)]


@dataclass(frozen=True, slots=True)
class SubagentFile:
    """A file beside a session's that holds one of its sub-agents."""

    agent: str
    file: str

    def to_json(self) -> dict[str, JSON]:
        """Return it as it is written beside the call that began it."""
        return {"agent": self.agent, "file": self.file}


def agent_of(name: str, rows: Iterable[Mapping[str, JSON]]) -> str:
    """Return the id of the sub-agent that a file holds: its lines' own, else that in its name."""
    stated = next((text(row.get("agentId")) for row in rows if row.get("agentId")), "")
    return stated or PurePosixPath(name).stem.removeprefix(_AGENT)


def prompt_of(rows: Iterable[Mapping[str, JSON]]) -> str:
    """Return what a sub-agent was begun with."""
    return next((text_of(mapping(row.get("message")).get("content")) for row in rows if row.get("type") == "user"), "")


def subagent_files(unit: Unit, name: str) -> dict[str, SubagentFile]:
    """Return the files beside a session's that hold its sub-agents, by agent id, and by prompt where one has it."""
    siblings = siblings_of(unit)
    found: dict[str, SubagentFile] = {}
    prompts: dict[str, list[SubagentFile]] = {}
    for path, head in (siblings.heads() if siblings is not None and name else {}).items():
        row, file = head[0] if head else {}, PurePosixPath(path).name
        if row.get("isSidechain") is True and row.get("sessionId") == name and file != unit.name:
            inner = found[agent_of(file, head)] = SubagentFile(agent_of(file, head), file)
            prompts.setdefault(prompt_of(head), []).append(inner)
    return {prompt: each[0] for prompt, each in prompts.items() if prompt and len(each) == 1} | found


def spawned_by(unit: Unit, name: str, rows: Sequence[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return the session and call that began the sub-agent whose file this is, the call where its file is beside."""
    found: dict[str, JSON] = {"session": name} if name else {}
    siblings = siblings_of(unit)
    if siblings is None or not name:
        return found
    for path, head in siblings.heads().items():
        mains = [row for row in head if row.get("sessionId") == name and not row.get("isSidechain")]
        if mains and PurePosixPath(path).name != unit.name:
            call, line = _spawning(siblings.lines(path), agent_of(unit.name, rows), prompt_of(rows))
            if call:
                return {**found, "call": call, "file": PurePosixPath(path).name, "line": line}
    return found


def _spawning(lines: Sequence[JsonLine], agent: str, prompt: str) -> tuple[str, int]:
    """Return the call, and the line, whose result names an agent, else the only one that was given its prompt."""
    begun: list[tuple[str, int]] = []
    for line in lines:
        named = text(mapping(line.value.get("toolUseResult")).get("agentId")) == agent
        for block in map(mapping, items(mapping(line.value.get("message")).get("content"))):
            if named and (call := text(block.get("tool_use_id"))):
                return call, line.number
            if prompt and text(mapping(block.get("input")).get("prompt")) == prompt and block.get("type") == "tool_use":
                begun.append((text(block.get("id")), line.number))
    return begun[0] if len({call for call, _ in begun}) == 1 else ("", 0)
