"""ATIF trajectories alone, v1.0 to v1.8: what an agent did, without its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import RolloutStarted
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.atif.events import TrajectoryReader
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.recordings import case_of, only
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, text, whole

NAME = "atif"
MISSING = "model: ATIF keeps the conversation, not the requests as sent; no sampling settings or seed"
_FACTS = (
    "session_id",
    "trajectory_id",
    "schema_version",
    "notes",
    "final_metrics",
    "continued_trajectory_ref",
    "extra",
)


def recognises(shape: Shape) -> bool:
    """An object with ATIF's schema version, or with an agent and steps that have a source."""
    return is_trajectory(shape.object)


def is_trajectory(document: Mapping[str, JSON]) -> bool:
    """Say whether a document is an ATIF trajectory."""
    if text(document.get("schema_version")).startswith("ATIF"):
        return True
    steps = objects(document.get("steps"))
    return bool(steps) and isinstance(document.get("agent"), Mapping) and {"step_id", "source"} <= steps[0].keys()


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's one trajectory."""
    document = mapping(unit.only.json())
    source = Source(unit.name, unit.digest(), NAME)
    yield only(unit.name, lambda: _recording(document, source, report))


def first_instant(document: Mapping[str, JSON]) -> JSON:
    """Return the first time that a step states."""
    return next((step["timestamp"] for step in objects(document.get("steps")) if step.get("timestamp")), None)


def instruction(document: Mapping[str, JSON]) -> JSON:
    """Return what the user said before the agent's first turn; its beginning may be the same for all tasks."""
    opening = takewhile(lambda step: step.get("source") != "agent", objects(document.get("steps")))
    said = [step.get("message") for step in opening if step.get("source") == "user"]
    return said[0] if len(said) == 1 else "\n".join(map(text_of, said)) or None


def agent_conditions(document: Mapping[str, JSON], model: str) -> dict[str, JSON]:
    """Return the manifest values that a trajectory's agent states."""
    agent = mapping(document.get("agent"))
    extra, tools = mapping(agent.get("extra")), items(agent.get("tool_definitions"))
    return {
        "harness.name": text(agent.get("name")) or None,
        "harness.revision": text(agent.get("version")) or None,
        "model.name": model or None,
        "sampling.temperature": number(extra.get("temperature")),
        "sampling.max_tokens": extra.get("max_tokens") if number(extra.get("max_tokens")) is not None else None,
        "tools.schemas": digest(tools) if tools else None,
    }


def totals(document: Mapping[str, JSON]) -> Totals:
    """Return what a trajectory's final metrics state."""
    final, steps = mapping(document.get("final_metrics")), items(document.get("steps"))
    counted = {name.removeprefix("total_"): value for name, value in final.items()}
    return Totals.of(
        usage.atif(counted),
        messages=whole(final.get("total_steps")),
        kept_messages=len(steps),
        rows="steps",
        cost=number(final.get("total_cost_usd")) or None,
    )


def facts_of(document: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return what a trajectory states as a whole."""
    found: dict[str, JSON] = {key: document.get(key) for key in _FACTS}
    found["agent"] = {key: value for key, value in mapping(document.get("agent")).items() if key != "tool_definitions"}
    return not_empty(found)


def _recording(document: Mapping[str, JSON], source: Source, report: Report) -> Recording:
    began = instant(first_instant(document))
    builder = TraceBuilder()
    reader = TrajectoryReader(builder, began)
    reader.read(document)
    for name in reader.missing:
        report.skip(name, "a sub-agent's trajectory that the file refers to and doesn't hold")
    agent = mapping(document.get("agent"))
    model = reader.model or text(agent.get("model_name"))
    case, case_digest = case_of(instruction(document))
    manifest = Manifest.of(
        {**agent_conditions(document, model), "panel.case": case, "panel.case_digest": case_digest},
        unknown="not recorded by ATIF trajectories",
        reasons={
            "seeds.seed": "ATIF has no field for a seed",
            "evaluator.name": "the verdict is in the trial's result",
        },
    )
    builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    times = [time for step in objects(document.get("steps")) if (time := instant(step.get("timestamp")))]
    return Recording(
        manifest=manifest,
        trace=builder.close(Outcome.UNKNOWN),
        outcome=Outcome.UNKNOWN,
        case=case,
        source=source,
        harness=text(agent.get("name")),
        revision=text(agent.get("version")),
        model=model,
        replayability=Replayability.VIEW_ONLY,
        missing=MISSING,
        started_at=began,
        ended_at=max(times) if times else None,
        facts={"trajectory": facts_of(document)},
        totals=totals(document),
    )
