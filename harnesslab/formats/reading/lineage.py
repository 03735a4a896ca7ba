"""A session as a tree: entries with parents, and for each agent the path that its model saw.

A file holds entries in the order in which they were written. An entry that names an earlier one than the last as its
parent begins another branch: the context goes back to that parent, and what was said since is left. Left branches
stay among the events, marked; they are in no input of the path that goes on. Copied entries are marked and linked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.trace.answers import COPIED
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.transcript import Transcript

LEFT = "is_left_branch"
"""Key in `extra` of what was said or done on a branch that was rewound or rolled back, so that no later call saw it."""
COPIED_FROM = "copied_from"
"""Key in `extra` beside `COPIED`: the id of the session that an entry was copied from."""
SPAWNED_BY = "spawned_by"
"""Key in `extra` of an opening event: the session and call that a sub-agent's own file belongs to."""
SUBAGENT = "subagent_session"
"""Key in `extra` of a call that began a sub-agent whose events are in a file of their own: which agent and file."""


@dataclass(slots=True, eq=False)
class SessionEntry:
    """One entry of an agent's conversation; its messages stay in the context until a compaction."""

    parent: SessionEntry | None = None
    depth: int = 0
    messages: list[JSON] = field(default_factory=list)
    resets: bool = False
    """Whether the context begins anew here."""
    next: SessionEntry | None = None
    """What stands between it and its children though they name it as their parent, such as a second result."""
    is_note: bool = False
    """Whether it is the harness's words, which go on where their parent does."""
    has_children: bool = False
    """Whether anything but the harness's words follows it."""
    waits: int = 0
    """How many results may still follow it without beginning a branch."""

    def end(self) -> SessionEntry:
        """Return the entry that a child of this one follows."""
        entry = self
        while entry.next is not None and not entry.next.is_of_another:
            entry = entry.next
        return entry

    @property
    def is_of_another(self) -> bool:
        """Whether these are the harness's words for what follows them alone, such as those before a prompt."""
        return self.is_note and self.has_children and self.next is None


class Lineage:
    """One agent's tree, with a transcript that follows the path to the entry that was made last."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.root = SessionEntry()
        self.tip = self.root
        self._named: dict[str, SessionEntry] = {}
        self._entries: list[SessionEntry] = []

    def named(self, name: str) -> SessionEntry | None:
        """Return the entry with an id; None for one that this agent has not."""
        return self._named.get(name) if name else None

    def name(self, entry: SessionEntry, *names: str) -> None:
        """Let ids stand for an entry: those of all lines of a reply, or of lines that say nothing to the model."""
        self._named.update((name, entry) for name in names if name)

    def begin(self, parent: SessionEntry | None = None, *, is_note: bool = False, calls: int = 0) -> SessionEntry:
        """Make an entry below a parent, else below the last one, and take the context back to where it stands."""
        above = self.tip if parent is None else parent.end()
        entry = SessionEntry(above, above.depth + 1, is_note=is_note, waits=above.waits if is_note else calls)
        self._entries.append(entry)
        if is_note and above.next is None and not above.has_children:
            above.next = entry
        elif not is_note:
            self._hang_on(above)
        if above is not self.tip:
            self._go_to(above)
        self.tip = entry
        return entry

    def _hang_on(self, entry: SessionEntry) -> None:
        """Note that something follows an entry, and so the harness's words before it too."""
        above: SessionEntry | None = entry
        while above is not None and not above.has_children:
            above.has_children = True
            above = above.parent if above.is_note else None

    def result(self, of: SessionEntry | None) -> SessionEntry:
        """Make the entry of a call's result: below the reply, or below the results that it has already."""
        above = self.tip if of is None else of.end()
        entry = self.begin(above)
        if above.waits and above.next is None:
            entry.waits, above.next = above.waits - 1, entry
        return entry

    def say(self, *messages: JSON) -> None:
        """Append messages to the last entry."""
        self.tip.messages.extend(messages)
        self.transcript.say(*messages)

    def restart(self, messages: Iterable[JSON] = ()) -> None:
        """Begin the context anew with the last entry, as a compaction does; what it holds comes first."""
        self.tip.resets, self.tip.messages = True, list(messages)
        self.transcript.restart(self.tip.messages)

    def between(self, head: SessionEntry | None, tail: SessionEntry | None) -> list[JSON]:
        """Return what the entries from one to another say, summaries left out; nothing where they are on two paths."""
        found: list[list[JSON]] = []
        entry = tail
        while entry is not None and head is not None:
            found.append([] if entry.resets else entry.messages)
            if entry is head:
                return [message for messages in reversed(found) for message in messages]
            entry = entry.parent
        return []

    def live(self) -> set[SessionEntry]:
        """Return the entries on the path to the last one; harness's words that nothing follows go with their parent."""
        found: set[SessionEntry] = set()
        above: SessionEntry | None = self.tip
        while above is not None:
            found.add(above)
            above = above.parent
        for entry in self._entries:  # parents come before their children
            if entry.is_note and not entry.has_children and entry.parent in found:
                found.add(entry)
        return found

    def _go_to(self, target: SessionEntry) -> None:
        """Cut the transcript back to where the paths to the last entry and to another part, and say the rest."""
        old: SessionEntry = self.tip
        new: SessionEntry = target
        back, ahead = list[SessionEntry](), list[SessionEntry]()
        while old is not new:
            if old.depth >= new.depth and old.parent is not None:
                back.append(old)
                old = old.parent
            elif new.parent is not None:
                ahead.append(new)
                new = new.parent
        ahead.reverse()
        if any(entry.resets for entry in (*back, *ahead)):
            self.transcript.restart(self._context(target))
            return
        self.transcript.rewind(sum(len(entry.messages) for entry in back))
        for entry in ahead:
            self.transcript.say(*entry.messages)

    def _context(self, target: SessionEntry) -> list[JSON]:
        found: list[list[JSON]] = []
        entry: SessionEntry | None = target
        while entry is not None:
            found.append(entry.messages)
            if entry.resets:
                break
            entry = entry.parent
        return [message for messages in reversed(found) for message in messages]


def mark(builder: TraceBuilder, index: int, facts: Mapping[str, JSON]) -> None:
    """Add facts to `extra` of an event that is already appended."""
    event = builder.events[index]
    builder.events[index] = msgspec.structs.replace(event, extra={**event.extra, **facts})


def copied_from(session: str) -> dict[str, JSON]:
    """Return the marks of an entry that was copied from a session; an unknown one has no name."""
    return {COPIED: True, **({COPIED_FROM: session} if session else {})}
