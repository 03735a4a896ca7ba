"""A Harbor trial as a recording: its outcome, conditions, and its place among the trials of its task."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import RolloutStarted
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.harbor import job as harbor_job
from harnesslab.formats.harbor import result as harbor_result
from harnesslab.formats.reading.values import instant, mapping, not_empty, text

_UNKNOWN = "not recorded by Harbor trials"
_REASONS = {
    "environment.image": "the result names the kind of environment, not an image digest",
    "seeds.seed": "Harbor sends no seed",
}
_UNTRUSTED = (Outcome.INFRA_ERROR, Outcome.INTERRUPTED, Outcome.VERIFY_TIMEOUT)


def recording(
    result: Mapping[str, JSON],
    builder: TraceBuilder,
    source: Source,
    reward: float | None,
    known: Mapping[str, JSON],
    facts: Mapping[str, JSON],
    missing: str,
    around: Mapping[str, Mapping[str, JSON]] | None = None,
) -> Recording:
    """Return a trial as a recording; `around` holds by name what lies beside it: its job's files, its task's trials."""
    beside, job = around or {}, (around or {}).get("config.json", {})
    number, replaced = harbor_job.place_of(result, [row for name, row in beside.items() if "/" in name], job)
    outcome = Outcome.INTERRUPTED if replaced else harbor_result.outcome_of(result, reward)
    values = {**not_empty(known), **not_empty(harbor_result.conditions(result))}
    manifest = Manifest.of(values, unknown=_UNKNOWN, reasons=_REASONS)
    builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=_error(result) or None),
        outcome=outcome,
        case=text(result.get("task_name")) or text(result.get("trial_name")).rsplit("__", 1)[0] or "unnamed",
        source=source,
        panel=harbor_result.panel_of(result),
        experiment=harbor_job.experiment_of(result, job),
        harness=text(values.get("harness.name")),
        revision=text(values.get("harness.revision")),
        model=text(values.get("model.name")),
        trial=number,
        trial_stated=bool(beside),
        tags=_tags(result, reward, replaced=replaced),
        reward=None if outcome in _UNTRUSTED else reward,
        replayability=Replayability.VIEW_ONLY,
        missing=missing,
        started_at=instant(result.get("started_at")),
        ended_at=instant(result.get("finished_at")),
        budgets=harbor_result.budgets(result),
        facts=facts,
        totals=harbor_result.totals(result, reward),
    )


def _tags(result: Mapping[str, JSON], reward: float | None, *, replaced: bool) -> tuple[str, ...]:
    """Mark an attempt that a retry replaced, and a trial with a reward that an exception ended all the same."""
    exception = text(mapping(result.get("exception_info")).get("exception_type"))
    return tuple(filter(None, ("superseded attempt" if replaced else "", "" if reward is None else exception)))


def _error(result: Mapping[str, JSON]) -> str:
    exception = mapping(result.get("exception_info"))
    return ": ".join(filter(None, (text(exception.get("exception_type")), text(exception.get("exception_message")))))
