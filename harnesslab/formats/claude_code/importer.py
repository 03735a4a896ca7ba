"""Claude Code sessions: JSONL as written by the agent, or one document with the same lines.

One session is one rollout. The lines of one reply share a message id and are one model call, whose usage counts
once. Sidechains are sub-agents; what the harness adds, such as compaction, hooks and reminders, is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.formats.claude_code.kinship import SubagentFile, copied_lines, spawned_by, subagent_files
from harnesslab.formats.claude_code.session import Session
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.lineage import SPAWNED_BY
from harnesslab.formats.reading.rows import line_at, rows_of, stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import epoch_time, mapping, moment, most_used, text

NAME = "claude-code"
_UNKNOWN = "not recorded by Claude Code sessions"
_SPOKEN = ("user", "assistant")
_MISSING = "model: the requests (system prompt, tool schemas, settings) are not recorded, only the conversation"


def recognises(shape: Shape) -> bool:
    """Lines of users and assistants with a message, in the envelope of a session."""
    rows = [mapping(row) for row in (*shape.head, *shape.items[:50], *_lines_in(shape.object)[:50])]
    spoken = [row for row in rows if row.get("type") in _SPOKEN and isinstance(row.get("message"), Mapping)]
    if not spoken or any("parts" in mapping(row.get("message")) for row in spoken):
        return False
    return bool(_lines_in(shape.object)) or any({"sessionId", "uuid", "parentUuid"} & row.keys() for row in spoken)


def _lines_in(document: Mapping[str, JSON]) -> list[JSON]:
    lines = document.get("loglines")
    return lines if isinstance(lines, list) else []


@dataclass(slots=True)
class _Place:
    """Where a session's lines are in the file."""

    lines: list[tuple[int, int, int]] = field(default_factory=list)
    kept: list[JsonLine] = field(default_factory=list)
    uuids: set[str] = field(default_factory=set)
    summaries: list[JSON] = field(default_factory=list)

    def read(self, data: bytes) -> list[JsonLine]:
        """Return the session's own lines."""
        return [*self.kept, *(JsonLine(n, start, end, line_at(data, start, end)) for n, start, end in self.lines)]


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's sessions in the order in which they begin."""
    data = unit.only.read()
    sessions = _sessions(unit, report)
    if not any(place.lines or place.kept for place in sessions.values()):
        raise FormatRefused("no session line could be read", where=unit.name)
    source_digest = unit.digest()
    for position, (name, place) in enumerate(sessions.items()):
        lines = place.read(data)
        before = _continued(name, lines, sessions, data)
        source = Source(unit.name, source_digest, NAME, position)
        # the file of a sub-agent bears its parent's session, of which it is no trial
        beside = all(line.value.get("isSidechain") is True for line in lines)
        case = stem(unit) if beside or not name else name
        kin = _kin(unit, name, lines, {line.number: other for other, rows in before.items() for line in rows}, beside)
        lines = sorted([*(line for rows in before.values() for line in rows), *lines], key=lambda line: line.number)
        yield _recording(name or case, case, lines, place, source, report, kin)


def _continued(
    name: str, lines: list[JsonLine], sessions: Mapping[str, _Place], data: bytes
) -> dict[str, list[JsonLine]]:
    """Return by session the earlier lines of the file that a session goes on from, as a resumed one does."""
    found: dict[str, list[JsonLine]] = {}
    first = lines[0] if lines else None
    while first is not None:
        parent = text(first.value.get("parentUuid"))
        known = {name, *found}
        other = next((each for each, place in sessions.items() if parent in place.uuids and each not in known), None)
        if not parent or other is None or parent in sessions[name].uuids:
            break
        rows = [line for line in sessions[other].read(data) if line.number < first.number]
        found[other] = rows
        first = rows[0] if rows else None
    return found


def _sessions(unit: Unit, report: Report) -> dict[str, _Place]:
    """Find which lines belong to which session, without keeping them; a summary goes where its leaf is."""
    sessions: dict[str, _Place] = {}
    summaries: list[tuple[int, Mapping[str, JSON]]] = []
    current = ""
    for line in rows_of(unit, report, "loglines"):
        row = line.value
        if row.get("type") == "summary":
            summaries.append((line.number, row))
            continue
        if not isinstance(row.get("type"), str):
            report.skip(f"line {line.number}", "no type")
            continue
        current = text(row.get("sessionId")) or current
        place = sessions.setdefault(current, _Place())
        if line.end:
            place.lines.append((line.number, line.start, line.end))
        else:
            place.kept.append(line)
        place.uuids.add(text(row.get("uuid")))
    for number, row in summaries:
        found = next((place for place in sessions.values() if text(row.get("leafUuid")) in place.uuids), None)
        if found is None and len(sessions) == 1:
            found = next(iter(sessions.values()))
        if found is None:
            report.skip(f"line {number}", "a summary of a session that is not in the file")
        else:
            found.summaries.append({key: row[key] for key in ("summary", "leafUuid") if key in row})
    return sessions


@dataclass(frozen=True, slots=True)
class _Kin:
    """How a session hangs together with others; see `kinship`."""

    copied: Mapping[int, str]
    subagents: Mapping[str, SubagentFile]
    spawned_by: Mapping[str, JSON]


def _kin(unit: Unit, name: str, lines: list[JsonLine], before: Mapping[int, str], beside: bool) -> _Kin:
    copied = {**copied_lines(unit, name, lines), **before}
    if not beside:
        return _Kin(copied, subagent_files(unit, name), {})
    return _Kin(copied, {}, spawned_by(unit, name, [line.value for line in lines]))


def _recording(
    name: str, case: str, lines: list[JsonLine], place: _Place, source: Source, report: Report, kin: _Kin
) -> Recording:
    rows = [line.value for line in lines]
    times = [at for row in rows if (at := moment(row.get("timestamp"))) is not None]
    start = times[0] if times else None
    models = [text(mapping(row.get("message")).get("model")) for row in rows if row.get("type") == "assistant"]
    model = most_used(item for item in models if item != "<synthetic>")
    versions, folders, branches = (_all(rows, key) for key in ("version", "cwd", "gitBranch"))
    manifest = _conditions(versions, model, folders)
    opening: dict[str, JSON] = {SPAWNED_BY: dict(kin.spawned_by)} if kin.spawned_by else {}
    session = Session(manifest.digest, start, kin.copied, kin.subagents, opening)
    session.read(lines, report)
    outcome = Outcome.INTERRUPTED if session.interrupted else Outcome.UNKNOWN
    several: dict[str, Sequence[JSON]] = {
        "versions": versions,
        "folders": folders,
        "branches": branches,
        "summaries": place.summaries,
    }
    facts: dict[str, JSON] = {"session": name, **{key: list(each) for key, each in several.items() if each}}
    facts |= _links(kin)
    if inner := session.sidechains:
        facts["sidechains"] = {"in_totals": True, "agents": inner}
    return Recording(
        manifest=manifest,
        trace=session.builder.close(outcome, error=session.interrupted or None),
        outcome=outcome,
        case=case,
        source=source,
        harness=NAME,
        workspace=folders[0] if folders else "",
        revision=versions[0] if versions else "",
        model=model,
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=epoch_time(start),
        ended_at=epoch_time(times[-1] if times else None),
        facts=facts,
    )


def _conditions(versions: list[str], model: str, folders: list[str]) -> Manifest:
    return Manifest.of(
        {
            "harness.name": NAME,
            "harness.revision": versions[0] if versions else None,
            "model.name": model or None,
            "environment.platform": folders[0] if folders else None,
        },
        unknown=_UNKNOWN,
    )


def _links(kin: _Kin) -> dict[str, JSON]:
    """Return the facts that link a rollout: its totals leave out what was copied, and sub-agents in other files."""
    facts: dict[str, JSON] = {}
    if kin.copied:
        facts["copied_from"] = sorted(set(kin.copied.values()))
    if kin.subagents:
        facts["subagents"] = {"in_totals": False, "files": sorted({each.file for each in kin.subagents.values()})}
    if kin.spawned_by:
        facts["spawned_by"] = dict(kin.spawned_by)
    return facts


def _all(rows: list[Mapping[str, JSON]], key: str) -> list[str]:
    """Return the different values of an envelope field, in order."""
    return list(dict.fromkeys(value for row in rows if (value := text(row.get(key)))))
