"""The replies of a Claude Code session: which lines are one reply, and what they say together.

A reply is written as several lines, a block each; some servers write it again as it grows. Ids alone don't tell
replies apart, since servers give out one message id for all: message, request, parent and place count together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.inputs import JsonLine
from harnesslab.formats.reading.values import items, mapping, text, whole

_GROWING = {"text": "text", "thinking": "thinking"}
"""By the type of a block, the key of its text."""


@dataclass(slots=True)
class SessionReply:
    """The lines of one reply, in their order."""

    lines: list[JsonLine]
    prompts: int = 0
    """How many prompts its agent was given before the last of its lines."""
    results: int = 0
    uuids: set[str] = field(default_factory=set)

    @property
    def last(self) -> Mapping[str, JSON]:
        """The message of its last line."""
        return mapping(self.lines[-1].value.get("message"))

    @property
    def stop(self) -> str:
        """Why it stopped, as the last line that says so has it."""
        stops = (text(mapping(line.value.get("message")).get("stop_reason")) for line in reversed(self.lines))
        return next((stop for stop in stops if stop), "")

    @property
    def usage(self) -> JSON:
        """Its token counts: those of the line that had seen most of it."""
        counts = [mapping(line.value.get("message")).get("usage") for line in self.lines]
        stated = [each for each in counts if each is not None]
        return max(reversed(stated), key=lambda each: whole(mapping(each).get("output_tokens")) or 0, default=None)


def replies_of(lines: Sequence[JsonLine]) -> dict[int, SessionReply]:
    """Return by line number the reply that a line is part of."""
    found: dict[int, SessionReply] = {}
    latest: dict[tuple[str, ...], SessionReply] = {}
    asked: dict[str, list[int]] = {}
    for line in lines:
        counts = asked.setdefault(_side(line.value), [0, 0])
        if line.value.get("type") == "user":
            counts[1 if _holds_results(line.value) else 0] += 1
        if line.value.get("type") != "assistant":
            continue
        key = _key(line.value)
        reply = latest.get(key) if any(key[1:]) else None
        if reply is None or not _continues(reply, line.value, counts):
            reply = latest[key] = SessionReply([])
        reply.lines.append(line)
        reply.prompts, reply.results = counts
        reply.uuids |= {text(line.value.get("uuid"))} - {""}
        found[line.number] = reply
    return found


def _side(row: Mapping[str, JSON]) -> str:
    return f"side {text(row.get('agentId'))}" if row.get("isSidechain") else ""


def _key(row: Mapping[str, JSON]) -> tuple[str, ...]:
    return (_side(row), text(mapping(row.get("message")).get("id")), text(row.get("requestId")))


def _holds_results(row: Mapping[str, JSON]) -> bool:
    content = items(mapping(row.get("message")).get("content"))
    return any(mapping(block).get("type") == "tool_result" for block in content)


def _continues(reply: SessionReply, row: Mapping[str, JSON], counts: Sequence[int]) -> bool:
    """Say whether a line with a reply's ids goes on with it, though something else may stand between."""
    parent = text(row.get("parentUuid"))
    if text(row.get("uuid")) in reply.uuids or (
        parent and (parent in reply.uuids or parent == reply.lines[0].value.get("parentUuid"))
    ):
        return True
    if counts[0] > reply.prompts:
        return False
    if counts[1] == reply.results or (row.get("requestId") and mapping(row.get("message")).get("id")):
        return True
    before, after = mapping(reply.usage), mapping(mapping(row.get("message")).get("usage"))
    return not reply.stop and before.get("input_tokens") == after.get("input_tokens")


def content_of(reply: SessionReply) -> list[JSON]:
    """Put the blocks of a reply's lines together; a block that is written again, as it was or longer, is one."""
    blocks: list[JSON] = []
    seen: set[str] = set()
    for line in reply.lines:
        uuid = text(line.value.get("uuid"))
        if uuid and uuid in seen:
            continue
        seen.add(uuid)
        content = mapping(line.value.get("message")).get("content")
        added: list[JSON] = [{"type": "text", "text": content}] if isinstance(content, str) else list(items(content))
        free = list(range(len(blocks)))
        for block in added:
            place = next((at for at in free if _is_again(blocks[at], block)), None)
            if place is None:
                blocks.append(block)
            else:
                free.remove(place)
                blocks[place] = block
    return blocks


def _is_again(before: JSON, after: JSON) -> bool:
    """Say whether a block is one of an earlier line, as it was or grown."""
    if before == after:
        return True
    one, two = mapping(before), mapping(after)
    kind = text(one.get("type"))
    if kind != two.get("type"):
        return False
    if kind in _GROWING:
        start = text(one.get(_GROWING[kind]))
        return bool(start) and text(two.get(_GROWING[kind])).startswith(start)
    # a call's input that was not whole when it was written first
    return kind == "tool_use" and bool(one.get("id")) and one.get("id") == two.get("id") and not one.get("input")
