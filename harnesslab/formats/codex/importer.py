"""Codex sessions: JSONL envelopes with a time, a type and a payload.

Response items are the conversation; event messages add what the tools produced, usage, and how turns ended.
A session's later `session_meta` lines of forks and sub-agents are part of it; one of another session begins a
new rollout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Recording, Replayability, Source
from harnesslab.formats.codex.kinship import CodexKin, kin_of, subagents
from harnesslab.formats.codex.session import CodexSession
from harnesslab.formats.reading.inputs import JsonLine, Report, Unit
from harnesslab.formats.reading.rows import rows_of, stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import epoch_time, mapping, moment, text

NAME = "codex"
_UNKNOWN = "not recorded by Codex sessions"
_KINDS = ("session_meta", "response_item", "turn_context", "event_msg")
_MISSING = "model: requests (tool schemas, sampling settings) are not recorded, only the items of the conversation"


def recognises(shape: Shape) -> bool:
    """Envelopes with a payload under one of the session's types."""
    rows = [mapping(row) for row in (*shape.head, *shape.items[:10], shape.object)]
    return any(row.get("type") in _KINDS and isinstance(row.get("payload"), Mapping) for row in rows)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's sessions, one in memory at a time."""
    source_digest, position = unit.digest(), 0
    for lines in _sessions(unit, report):
        meta = next((mapping(line.value["payload"]) for line in lines if line.value["type"] == "session_meta"), {})
        kin = kin_of(unit, lines, meta, report)
        begun = subagents(unit, text(meta.get("id")))
        yield _recording(lines, Source(unit.name, source_digest, NAME, position), stem(unit), kin, begun)
        position += 1
    if not position:
        raise FormatRefused("no session line could be read", where=unit.name)


def _sessions(unit: Unit, report: Report) -> Iterator[list[JsonLine]]:
    """Yield the lines of each session; forks, parents and resumed ids belong to the session they are named in."""
    lines: list[JsonLine] = []
    known: set[str] = set()
    for line in rows_of(unit, report):
        payload = line.value.get("payload")
        if not isinstance(payload, Mapping) or not isinstance(line.value.get("type"), str):
            report.skip(f"line {line.number}", "no type with a payload")
            continue
        if line.value["type"] == "session_meta":
            names = {text(payload.get(key)) for key in ("id", "session_id")} - {""}
            related = text(payload.get("parent_thread_id")) or text(payload.get("forked_from_id"))
            if lines and known and not related and not names & known:
                yield lines
                lines, known = [], set()
            known |= names | ({related} if related else set())
        lines.append(line)
    if lines:
        yield lines


def _recording(
    lines: Sequence[JsonLine], source: Source, name: str, kin: CodexKin, begun: Mapping[str, str]
) -> Recording:
    payloads = [(text(line.value.get("type")), mapping(line.value.get("payload"))) for line in lines]
    meta = next((payload for kind, payload in payloads if kind == "session_meta"), {})
    turn = next((payload for kind, payload in payloads if kind == "turn_context"), {})
    times = [at for line in lines if (at := moment(line.value.get("timestamp"))) is not None]
    manifest = _manifest(meta, turn)
    session = CodexSession(manifest, times[0] if times else None, kin, begun)
    session.read(lines, meta, turn)
    outcome, error = session.outcome()
    return Recording(
        manifest=manifest,
        trace=session.walk.builder.close(outcome, error=error),
        outcome=outcome,
        case=text(meta.get("id")) or name,
        source=source,
        harness=NAME,
        revision=text(meta.get("cli_version")),
        model=text(turn.get("model")),
        workspace=text(meta.get("cwd")),
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=epoch_time(times[0] if times else None),
        ended_at=epoch_time(times[-1] if times else None),
        facts={**({"session": dict(meta)} if meta else {}), **_links(kin, begun)},
    )


def _links(kin: CodexKin, begun: Mapping[str, str]) -> dict[str, JSON]:
    """Return the facts that link a rollout: its totals leave out what was copied, and sub-agents in other files."""
    facts: dict[str, JSON] = {}
    if kin.parent:
        facts["copied_from"] = [kin.parent]
    if kin.spawned_by:
        facts["spawned_by"] = dict(kin.spawned_by)
    if begun:
        facts["subagents"] = {"in_totals": False, "files": sorted(begun.values())}
    return facts


def _manifest(meta: Mapping[str, JSON], turn: Mapping[str, JSON]) -> Manifest:
    network = mapping(turn.get("sandbox_policy")).get("network_access")
    return Manifest.of(
        {
            "harness.name": NAME,
            "harness.revision": meta.get("cli_version"),
            "model.name": turn.get("model"),
            "model.provider": meta.get("model_provider"),
            "sampling.reasoning_effort": turn.get("effort"),
            "environment.network": {"access": network} if isinstance(network, bool) else None,
            "environment.platform": meta.get("cwd"),
        },
        unknown=_UNKNOWN,
    )
