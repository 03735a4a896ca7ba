"""A harness-training run as an experiment: its kind, decision and certificates as its files state them."""

from __future__ import annotations

import re

from harnesslab.core.canonical import JSON
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.formats.companions import MEMO
from harnesslab.formats.harness_training.run import Run
from harnesslab.formats.reading.values import instant, mapping, text

_CHANGE = re.compile(r"^- `(?P<commit>[0-9a-f]{6,40})` (?P<said>\S+: .*)$", re.MULTILINE)
"""A line of the memo that names a candidate and its change."""
_RUN = re.compile(r"\S*\d{8}-\d{6}")
"""What stands in place of the change where a run couldn't be scored: the run's own name."""


def record_of(run: Run) -> ExperimentRecord:
    """Return what the run states of itself; one in no row of the index is a superseded attempt and decides nothing."""
    document, row = run.document, mapping(run.facts.get("index"))
    decision = mapping(document.get("decision"))
    outcome = decision.get("outcome") or row.get("verdict")
    return ExperimentRecord(
        external_id=text(document.get("experiment_id")),
        panel=text(mapping(run.config.get("environment")).get("kind")),
        kind=next((kind for kind in ExperimentKind if kind == document.get("kind")), None),
        revision=text(document.get("git_commit_hash")),
        parent_revision=text(document.get("parent_commit_hash")),
        baseline=text(document.get("baseline_experiment_id")),
        verdict=next((verdict for verdict in Verdict if verdict == outcome), None),
        reason=text(decision.get("reason")) or text(row.get("reason")),
        mechanism=_mechanism(run),
        decision=decision,
        certification=mapping(document.get("determinism_certification")),
        identity=text(row.get("measurement_identity_digest")),
        memo=_memo(run),
        started_at=instant(document.get("started_at")),
        ended_at=instant(document.get("finished_at")),
        facts={**run.facts, **_inherited(run)},
    )


def _mechanism(run: Run) -> str:
    commit = text(run.document.get("git_commit_hash"))
    for found in _CHANGE.finditer(text(run.facts.get("learning"))):
        if commit.startswith(found["commit"]) and not _RUN.match(found["said"]):
            return found["said"]
    return ""


def _memo(run: Run) -> str:
    """Return the whole memo of the run's tree."""
    memo = run.unit.beside.get(MEMO)
    return memo.read().decode("utf-8", "surrogateescape") if memo else ""


def _inherited(run: Run) -> dict[str, JSON]:
    """Name the forked cases without evidence of the fork in this run: their certificate was taken from an earlier one.

    A deterministic case leaves no evidence of its own, so that an inherited one can't be told.
    """
    said = mapping(run.document.get("determinism_certification"))
    forked = [
        case
        for case, certificate in said.items()
        if mapping(certificate).get("verdict") == "forked"
        and f"tasks/{case}/infra/determinism_fork.json" not in run.unit.files
    ]
    return {"inherited_forks": list(forked)} if forked and run.unit.folder else {}
