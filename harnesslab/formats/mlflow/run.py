"""MLflow runs as experiments: parameters and metrics verbatim, and our own words where a mirrored run states them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.formats.reading.values import epoch_time, mapping, number, text, whole

_OURS = "harnesslab."


def record_of(run: Mapping[str, JSON], project: str, ids: Mapping[str, str]) -> ExperimentRecord:
    """Return what a run states, from its document (`Run.to_dictionary`); `ids` are the runs beside it by name."""
    info, data = mapping(run.get("info")), mapping(run.get("data"))
    tags, params, metrics = (mapping(data.get(name)) for name in ("tags", "params", "metrics"))
    baseline = text(tags.get(f"{_OURS}baseline"))
    kind, verdict = text(params.get("kind")), text(tags.get(f"{_OURS}verdict"))
    return ExperimentRecord(
        external_id=text(info.get("run_id")),
        project=project,
        kind=ExperimentKind(kind) if kind in tuple(ExperimentKind) else ExperimentKind.EVAL,
        revision=text(params.get("revision")) or text(tags.get("mlflow.source.git.commit")),
        baseline=ids.get(baseline, baseline),
        verdict=Verdict(verdict) if verdict in tuple(Verdict) else None,
        reason=text(tags.get(f"{_OURS}reason")),
        mechanism=text(tags.get(f"{_OURS}mechanism")) or text(info.get("run_name")),
        solved=_count(metrics.get("solved")),
        total=_count(metrics.get("total")),
        metrics={name: value for name, value in metrics.items() if isinstance(value, int | float)},
        started_at=_moment(info.get("start_time")),
        ended_at=_moment(info.get("end_time")),
        facts={"info": dict(info), "params": dict(params), "metrics": dict(metrics), "tags": dict(tags)},
    )


def _count(value: JSON) -> int | None:
    stated = number(value)
    return whole(int(stated)) if stated is not None and stated % 1 == 0 else None


def _moment(value: JSON) -> datetime | None:
    milliseconds = number(value)
    return epoch_time(milliseconds / 1000 if milliseconds else None)
