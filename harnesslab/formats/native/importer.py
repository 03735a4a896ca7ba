"""HarnessLab's own JSON lines: what a person or program writes to bring a trace that no other format holds.

A line with ``rollout`` opens a rollout and states its facts; each further line is an event with its ``kind``.
A model call gives its messages whole (``messages``), or as what follows the first ``keep`` messages of the
agent's previous call; its ``tools`` are schemas, or ``true`` for those of the previous call. The file
`docs/formats.md` describes every field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest, Provenance
from harnesslab.core.errors import FormatRefused, HarnessLabError, InvalidValue
from harnesslab.core.running.rollout import Origin, Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import AnyEvent, ModelCall, RolloutEnded, RolloutStarted, Window, from_json, to_json
from harnesslab.core.trace.trace import Trace, TraceBuilder, Windows
from harnesslab.formats.native.schemas import TRACES, TraceSchema
from harnesslab.formats.reading.inputs import Report, Unit, json_lines
from harnesslab.formats.reading.recordings import attempt, some
from harnesslab.formats.reading.sniff import Shape

NAME = "harnesslab"
SCHEMA = TRACES.schema(TRACES.newest)


class Header(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The opening line's `rollout` object."""

    schema: str
    case: str
    outcome: Outcome = Outcome.UNKNOWN
    project: str = "imported"
    panel: str = ""
    experiment: str = ""
    harness: str = ""
    revision: str = ""
    model: str = ""
    engine: str = ""
    trial: int | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    reward: float | None = None
    origin: Origin = Origin.IMPORTED
    grade: Replayability = Replayability.VIEW_ONLY
    missing: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    budgets: dict[str, float] = msgspec.field(default_factory=dict)
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    conditions: dict[str, Any] = msgspec.field(default_factory=dict)
    """Known conditions by dotted name; the rest is unknown."""
    manifest: dict[str, Any] | None = None
    """A whole manifest document, instead of `conditions`."""


def recognises(shape: Shape) -> bool:
    """Lines of which the first opens a rollout of this schema."""
    opening = shape.first_object().get("rollout", shape.object.get("rollout"))
    return isinstance(opening, Mapping) and str(opening.get("schema", "")).startswith(f"{TRACES.name}/")


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the rollouts in file order; a damaged line, or a rollout that can't be made, is left out and reported."""
    yield from some(unit.name, report, _rollouts(unit, report))


def _rollouts(unit: Unit, report: Report) -> Iterator[Recording]:
    digest = unit.digest()
    draft: _Draft | None = None
    position = -1
    for number, line in json_lines(unit.only.read(), report):
        if "rollout" in line:
            yield from _ended(draft, Source(unit.name, digest, NAME, position), report)
            position, draft = position + 1, _opened(line["rollout"], f"line {number}", report)
        elif draft is not None:
            draft.add(line, f"line {number}", report)
        elif position < 0:
            report.skip(f"line {number}", "an event before any rollout")
    yield from _ended(draft, Source(unit.name, digest, NAME, position), report)


def _opened(raw: JSON, where: str, report: Report) -> _Draft | None:
    """Begin a rollout; None, which leaves its events out too, where its opening can't be read."""
    try:
        return _Draft(_header(raw, where))
    except FormatRefused as error:
        report.skip(where, error.sentence.removeprefix(f"{where}: "))
        return None


def _ended(draft: _Draft | None, source: Source, report: Report) -> Iterator[Recording]:
    if draft is not None:
        yield from attempt(report, f"rollout {source.position}", partial(_recorded, draft, source, report))


class _Draft:
    """The events of one rollout as its lines come."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._schema = TRACES.of(header.schema)
        self.builder = TraceBuilder()
        self.ended: RolloutEnded | None = None
        self._messages: dict[str, list[JSON]] = {}
        self._tools: dict[str, JSON] = {}

    def add(self, line: Mapping[str, JSON], where: str, report: Report) -> None:
        """Append the event of one line, or report why it is left out."""
        try:
            if line.get("kind") == "model_call":
                self._model_call(line)
                return
            event = from_json(_known(line, self._schema))
            if isinstance(event, RolloutEnded):
                self.ended = event
            elif not isinstance(event, RolloutStarted):
                self.builder.add(event)
            else:
                self._started(event)
        except (msgspec.ValidationError, HarnessLabError) as error:
            report.skip(where, str(error))
        except RecursionError:
            report.skip(where, "nested too deeply")

    def _started(self, event: RolloutStarted) -> None:
        if self.builder.events:
            raise FormatRefused("rollout_started is not the first event")
        self.builder.add(event)

    def _model_call(self, line: Mapping[str, JSON]) -> None:
        agent, keep, given = line.get("agent", ""), line.get("keep", 0), line.get("messages", [])
        if not isinstance(agent, str) or not isinstance(keep, int) or not isinstance(given, list):
            raise FormatRefused("agent must be text, keep a number and messages a list")
        previous = self._messages.get(agent, [])
        if not 0 <= keep <= len(previous):
            raise FormatRefused(f"keeps {keep} messages of {len(previous)}")
        messages = previous[:keep] + given
        rest = {key: value for key, value in line.items() if key not in ("messages", "keep", "tools", "agent", "input")}
        event = from_json(_known(rest, self._schema))
        if not isinstance(event, ModelCall):
            raise FormatRefused("not a model call")
        tools = line.get("tools")
        if tools is True:
            tools = self._tools.get(agent)
        self._messages[agent], self._tools[agent] = messages, tools
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        for name in ("agent", "input", "tools"):
            del fields[name]
        self.builder.model_call(messages, tools=tools, agent=agent, **fields)


def _known(line: Mapping[str, JSON], schema: TraceSchema) -> Mapping[str, JSON]:
    """Move the keys that the schema doesn't know of the event's kind into `extra`, so that nothing is lost."""
    fields = schema.keys_of(str(line.get("kind")))
    if not fields:
        return line
    strange = {key: value for key, value in line.items() if key not in fields}
    if not strange:
        return line
    extra = line.get("extra")
    kept = {key: value for key, value in line.items() if key in fields}
    return {**kept, "extra": {**(extra if isinstance(extra, Mapping) else {}), **strange}}


def _header(raw: JSON, where: str) -> Header:
    try:
        return header_from(raw)
    except InvalidValue as error:
        raise FormatRefused(error.what, where=where, hint=error.hint) from error
    except msgspec.ValidationError as error:
        raise FormatRefused(f"the rollout's opening can't be read: {error}", where=where) from error


def header_from(raw: JSON) -> Header:
    """Read an opening by the schema that it states.

    Raises `InvalidValue` for a schema that isn't known, `msgspec.ValidationError` naming what is wrong with the rest.
    """
    if not isinstance(raw, Mapping) or "schema" not in raw:
        return msgspec.convert(raw, type=Header)
    schema = TRACES.of(raw["schema"])
    return msgspec.convert({key: value for key, value in raw.items() if key in schema.opening}, type=Header)


def _recorded(draft: _Draft, source: Source, report: Report) -> Recording:
    header = draft.header
    if header.manifest is not None:
        manifest = Manifest.from_json(header.manifest)
    else:
        manifest = Manifest.of(
            {
                "panel.name": header.panel or None,
                "panel.case": header.case,
                "model.name": header.model or None,
                "harness.name": header.harness or None,
                "harness.revision": header.revision or None,
            }
            | header.conditions,
            unknown="not stated in the file",
            provenance=Provenance.IMPORTED,
        )
    outcome = header.outcome
    if draft.ended is None and outcome is Outcome.UNKNOWN:
        outcome = Outcome.INTERRUPTED
        report.remark(f"rollout {source.position}", "no closing event and no outcome: kept as interrupted")
    return recording(header, manifest, _closed(draft, manifest, outcome), outcome, source)


def recording(header: Header, manifest: Manifest, trace: Trace, outcome: Outcome, source: Source) -> Recording:
    """Make the recording that a header and a trace describe."""
    return Recording(
        manifest=manifest,
        trace=trace,
        outcome=outcome,
        case=header.case,
        source=source,
        project=header.project,
        panel=header.panel,
        experiment=header.experiment,
        harness=header.harness,
        revision=header.revision,
        model=header.model,
        engine=header.engine,
        trial=header.trial if header.trial is not None else source.position,
        trial_stated=header.trial is not None,
        tags=tuple(header.tags),
        reward=header.reward,
        origin=header.origin,
        replayability=header.grade,
        missing=header.missing or "harness: none was named that could run again",
        started_at=header.started_at,
        ended_at=header.ended_at,
        budgets=header.budgets,
        facts=header.facts,
    )


def _closed(draft: _Draft, manifest: Manifest, outcome: Outcome) -> Trace:
    """Complete the trace with an opening and a closing event where the file has none."""
    builder = draft.builder
    if not builder.events or not isinstance(builder.events[0], RolloutStarted):
        builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    if draft.ended is not None and draft.ended.count == len(builder.events) + 1:
        builder.events.append(draft.ended)
        return builder.trace()
    ended = draft.ended or RolloutEnded(outcome=outcome)
    return builder.close(outcome, state=ended.state, diff=ended.diff, error=ended.error, extra=dict(ended.extra))


def lines(header: Header, trace: Trace) -> Iterator[dict[str, JSON]]:
    """Yield a trace as the lines of this format."""
    yield {"rollout": msgspec.to_builtins(header)}
    windows, tools_before = Windows(), dict[str, int | None]()
    for event in trace.events:
        yield _line(event, trace, windows, tools_before)


def _line(event: AnyEvent, trace: Trace, windows: Windows, tools_before: dict[str, int | None]) -> dict[str, JSON]:
    line = to_json(event)
    if not isinstance(event, ModelCall):
        return line
    windows.open(event)
    line.pop("input", None)
    window: Window = event.input
    line["keep"] = window.keep
    line["messages"] = [trace.payloads[position] for position in window.add]
    if event.tools is not None:
        line["tools"] = True if tools_before.get(event.agent) == event.tools else trace.payloads[event.tools]
    tools_before[event.agent] = event.tools
    return line
