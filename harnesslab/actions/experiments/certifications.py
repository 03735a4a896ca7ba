"""Certifying an experiment's cases: audits are ordered as jobs, certificates inherited where nothing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from django.db import transaction

from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.projects.mirrors import say_again
from harnesslab.actions.reruns.lifecycle import QUEUE, WOKEN
from harnesslab.core.canonical import digest
from harnesslab.core.errors import Conflict, HarnessLabError
from harnesslab.core.measuring.cells import Cell, by_case
from harnesslab.core.measuring.certification import Certificate, chain_of
from harnesslab.core.measuring.experiments import State
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.measurements import certificates_of, get_measured, measuring_plan_of
from harnesslab.queries.jobs.groups import audits_group
from harnesslab.queries.reruns.listing import recipe_of
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.manifests import load_manifest
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Experiment, Job, JobState
from harnesslab.store.models.jobs import ENDED
from harnesslab.store.text import frozen

KIND = "certify"
EARLIER = 50
"""Experiments back that certificates are inherited from."""


class AuditsFailed(HarnessLabError):
    """Audits failed by themselves: nothing is excluded for that."""


def ask_audits(experiment_id: int) -> bool:
    """Order the audits of a measured experiment; True where it is certified already. Raises `Conflict` or `NotFound`.

    The last audit that ends gathers what they found; an audit that failed is made again.
    """
    row = get_measured(experiment_id)
    measuring_plan_of(row)
    if row.state == State.RUNNING:
        raise Conflict("it is still being measured", where=row.name, hint="certify it when all rollouts have ended")
    if not row.certification:
        jobs.requeue_group(audits_group(experiment_id))
    return certify(row)


def certify(experiment: Experiment) -> bool:
    """Certify an experiment's cases, ordering audits where they are needed; True once it is done.

    Raises `AuditsFailed` where an audit failed by itself.
    """
    if experiment.certification:
        return True
    audits = Job.objects.filter(group=audits_group(experiment.pk))
    if audits.exclude(state__in=ENDED).exists():
        return False
    cells = by_case(cells_of([experiment.pk])[experiment.pk])
    there = {str(job.payload.get("case")): job for job in audits}
    known = _inherited(experiment, {case: found for case, found in cells.items() if case not in there})
    if new := [case for case in cells if case not in known and case not in there]:
        _order(experiment, new)
        return False
    return _gathered(experiment, list(cells), known, there)


@transaction.atomic
def _order(experiment: Experiment, cases: Sequence[str]) -> None:
    """Queue the audits, all or none: while one of them waits, nobody looks for what else there is to do."""
    group = audits_group(experiment.pk)
    for place, case in enumerate(cases):
        jobs.enqueue(
            KIND,
            {"experiment": experiment.pk, "case": case},
            idempotency_key=f"{group} {digest(case)[:16]}",
            queue_name=QUEUE,
            group=group,
            silently=place >= WOKEN,
        )


def _gathered(experiment: Experiment, cases: list[str], known: dict[str, Certificate], there: dict[str, Job]) -> bool:
    failed = [job for job in there.values() if job.state != JobState.DONE]
    if failed:
        job = failed[0]
        raise AuditsFailed(f"{len(failed)} audits failed, the first of {job.payload.get('case')!r}: {job.message}")
    found = {case: known.get(case) or Certificate.from_json(there[case].result["certificate"]) for case in cases}
    document = {case: certificate.to_json() for case, certificate in found.items()}
    Experiment.objects.filter(pk=experiment.pk).update(certification=frozen(document))
    say_again(experiment.pk)
    return True


def _inherited(experiment: Experiment, cells: Mapping[str, Sequence[Cell]]) -> dict[str, Certificate]:
    """Return certificates of the same chain under the same identity from earlier experiments; the newest by case."""
    given: dict[str, list[tuple[str, Certificate]]] = {}
    for earlier in _earlier(experiment):
        for case, certificate in certificates_of(earlier).items():
            if case in cells:
                given.setdefault(case, []).append((earlier.name, certificate))
    found = {}
    for case, offered in given.items():
        inherited = _held(cells[case], offered) if len(cells[case]) == 1 else None
        if inherited is not None:
            found[case] = inherited
    return found


def _held(cells: Sequence[Cell], offered: Sequence[tuple[str, Certificate]]) -> Certificate | None:
    row = get_rollout(cells[0].rollout)
    identity = load_manifest(row.manifest_id).identity
    alike = [(name, given) for name, given in offered if given.identity == identity]
    if not alike:
        return None
    chain = chain_of(StoredTraceReader(row).trace(), recipe_of(row))
    held = [(name, given) for name, given in alike if not chain.why_not and given.holds_for(chain.digest, identity)]
    return next((msgspec.structs.replace(given, inherited=given.inherited or name) for name, given in held), None)


def _earlier(experiment: Experiment) -> list[Experiment]:
    rows = Experiment.objects.filter(project=experiment.project_id, pk__lt=experiment.pk).exclude(certification=b"")
    return list(rows.exclude(plan=b"").only("name", "plan", "certification").order_by("-pk")[:EARLIER])
