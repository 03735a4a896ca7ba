"""Certificates as read models: what the audit of each case found, and how far audits are."""

from __future__ import annotations

from django.db.models.fields.json import KT

from harnesslab.core.certification import Certificate
from harnesslab.queries.measurements import certificates_of
from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import Experiment, Job


class CertificateRow(ReadModel):
    """The audit of one case."""

    case: str
    verdict: str
    why: str
    """Why it can't be run again, or where it forks."""
    commands: int
    inherited: str


def certificate_rows(experiment: Experiment) -> list[CertificateRow]:
    """Return what an experiment's audits found, in the order of its cases."""
    return [_row(case, found) for case, found in certificates_of(experiment).items()]


def audits(experiment_id: int) -> dict[str, str]:
    """Return the state of each audit of an experiment, by case."""
    jobs = Job.objects.filter(group=f"certify {experiment_id}").annotate(case=KT("payload__case")).order_by("pk")
    return dict(jobs.values_list("case", "state"))


def _row(case: str, found: Certificate) -> CertificateRow:
    why = found.why
    if found.fork is not None:
        fork = found.fork
        why = f"its {fork.what} differs at command {fork.place + 1}, {fork.command[:120]}"
    return CertificateRow(
        case=case, verdict=found.verdict.value, why=why, commands=found.commands, inherited=found.inherited
    )
