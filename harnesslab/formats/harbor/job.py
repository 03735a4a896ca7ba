"""A Harbor job around its trials: what it states of the whole, and which of its trials count."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, text, whole


def is_job(document: Mapping[str, JSON]) -> bool:
    """Say whether a document is a job's configuration or summary."""
    keys = document.keys()
    return keys >= {"n_total_trials", "stats"} or (
        keys >= {"agents", "datasets"} and bool({"jobs_dir", "n_attempts"} & keys)
    )


def experiment_of(result: Mapping[str, JSON], config: Mapping[str, JSON]) -> str:
    """Name a trial's experiment: its job, and with several agents in the job also the agent and model."""
    own = mapping(result.get("config"))
    job, agent = text(own.get("job_id")), mapping(own.get("agent"))
    if not job or len(items(config.get("agents"))) < 2:
        return job
    return " ".join(filter(None, (job, text(agent.get("name")), text(agent.get("model_name")))))


def record(
    result: Mapping[str, JSON], config: Mapping[str, JSON], summary: Mapping[str, JSON]
) -> ExperimentRecord | None:
    """Return what a trial and its job state of the job as an experiment; None for a trial of no job."""
    name, own = experiment_of(result, config), mapping(result.get("config"))
    if not name:
        return None
    info, stats = mapping(result.get("agent_info")), mapping(summary.get("stats"))
    return ExperimentRecord(
        external_id=name,
        panel=text(result.get("source")),
        kind=ExperimentKind.EVAL,
        revision=text(info.get("version")),
        mechanism=text(config.get("job_name")) or text(own.get("trials_dir")).rsplit("/", 1)[-1],
        metrics=stats,
        started_at=instant(summary.get("started_at")),
        ended_at=instant(summary.get("finished_at")),
        facts=not_empty(
            {
                "format": "harbor",
                "job": dict(summary),
                "config": dict(config),
            }
        ),
    )


def place_of(
    result: Mapping[str, JSON], siblings: list[Mapping[str, JSON]], config: Mapping[str, JSON]
) -> tuple[int, bool]:
    """Return (number of the trial, whether a retry replaced it), counted over its task's trials as they began.

    A job declares how many trials a task has. With more of them, those that failed by an exception were tried again:
    they are attempts at the trial that follows them, never samples of their own.
    """
    same = [other for other in siblings if _what(other) == _what(result)]
    declared = whole(config.get("n_attempts"))
    spare = max(0, len(same) - declared) if declared is not None else 0
    number = 0
    for other in sorted(same, key=lambda item: (text(item.get("started_at")), text(item.get("trial_name")))):
        replaced = spare > 0 and bool(mapping(other.get("exception_info"))) and not _graded(other)
        if text(other.get("trial_name")) == text(result.get("trial_name")):
            return number, replaced
        spare, number = (spare - 1, number) if replaced else (spare, number + 1)
    return 0, False


def _what(result: Mapping[str, JSON]) -> tuple[str, str, str]:
    agent = mapping(mapping(result.get("config")).get("agent"))
    return text(result.get("task_name")), text(agent.get("name")), text(agent.get("model_name"))


def _graded(result: Mapping[str, JSON]) -> bool:
    return bool(mapping(mapping(result.get("verifier_result")).get("rewards")))
