"""Certifying an experiment's cases: audits are ordered as jobs, certificates inherited where nothing changed."""

from __future__ import annotations

import msgspec

from harnesslab.actions import jobs
from harnesslab.actions.reruns import BELLS, QUEUE
from harnesslab.core.canonical import digest
from harnesslab.core.certification import Certificate, chain_of
from harnesslab.core.errors import Conflict, HarnessLabError
from harnesslab.core.experiments import State
from harnesslab.queries.cells import cells_of
from harnesslab.queries.manifests import load_manifest
from harnesslab.queries.measurements import certificates_of, get_measured, plan_of, rollouts_of
from harnesslab.queries.reruns import recipe_of
from harnesslab.queries.tapes import StoredTape
from harnesslab.store.models import Experiment, Job, JobState
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import frozen

KIND = "certify"
EARLIER = 50
"""Experiments back that certificates are inherited from."""


class AuditsFailed(HarnessLabError):
    """Audits failed by themselves: nothing is excluded for that."""


def audits_of(experiment_id: int) -> str:
    """Return the group of an experiment's audits."""
    return f"{KIND} {experiment_id}"


def ask_audits(experiment_id: int) -> bool:
    """Order the audits of a measured experiment; True where it is certified already. Raises `Conflict` or `NotFound`.

    The last audit that ends gathers what they found; an audit that failed is made again.
    """
    row = get_measured(experiment_id)
    plan_of(row)
    if row.state == State.RUNNING:
        raise Conflict("it is still being measured", where=row.name, hint="certify it when all rollouts have ended")
    if not row.certification:
        jobs.requeue_group(audits_of(experiment_id))
    return certify(row)


def certify(experiment: Experiment) -> bool:
    """Certify an experiment's cases, ordering audits where they are needed; True once it is done.

    Raises `AuditsFailed` where an audit failed by itself.
    """
    if experiment.certification:
        return True
    cells = cells_of([experiment.pk])[experiment.pk]
    cases = list(dict.fromkeys(cell.case for cell in cells))
    known = {case: found for case in cases if (found := _inherited(experiment, case)) is not None}
    group = audits_of(experiment.pk)
    there = {str(job.payload.get("case")): job for job in Job.objects.filter(group=group)}
    for place, case in enumerate(case for case in cases if case not in known and case not in there):
        jobs.enqueue(
            KIND,
            {"experiment": experiment.pk, "case": case},
            idempotency_key=f"{group} {digest(case)[:16]}",
            queue_name=QUEUE,
            group=group,
            silently=place >= BELLS,
        )
    waiting = Job.objects.filter(group=group).exclude(state__in=ENDED).exists()
    if waiting or len(known) + len(there) < len(cases):
        return False
    return _gathered(experiment, cases, known, there)


def _gathered(experiment: Experiment, cases: list[str], known: dict[str, Certificate], there: dict[str, Job]) -> bool:
    failed = [job for job in there.values() if job.state != JobState.DONE]
    if failed:
        job = failed[0]
        raise AuditsFailed(f"{len(failed)} audits failed, the first of {job.payload.get('case')!r}: {job.message}")
    found = {case: known.get(case) or Certificate.from_json(there[case].result["certificate"]) for case in cases}
    document = {case: certificate.to_json() for case, certificate in found.items()}
    Experiment.objects.filter(pk=experiment.pk).update(certification=frozen(document))
    return True


def _inherited(experiment: Experiment, case: str) -> Certificate | None:
    """Return a certificate of the same chain under the same identity from an earlier experiment; the newest."""
    rows = rollouts_of(experiment.pk, case)
    if len(rows) != 1:
        return None
    identity = load_manifest(rows[0].manifest_id).identity
    chain = chain_of(StoredTape(rows[0]).trace(), recipe_of(rows[0]))
    for earlier in _earlier(experiment):
        given = certificates_of(earlier).get(case)
        if given is not None and not chain.why_not and given.holds_for(chain.digest, identity):
            return msgspec.structs.replace(given, inherited=given.inherited or earlier.name)
    return None


def _earlier(experiment: Experiment) -> list[Experiment]:
    rows = Experiment.objects.filter(project=experiment.project_id, pk__lt=experiment.pk).exclude(certification=b"")
    return list(rows.exclude(plan=b"").order_by("-pk")[:EARLIER])
