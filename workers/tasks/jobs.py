"""One attempt at a job: claim, beat, do the work of its kind, record the end once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from celery.signals import worker_shutting_down

from harnesslab.actions import progress
from harnesslab.actions.engines import registration as engines
from harnesslab.actions.experiments import certifications
from harnesslab.actions.imports import uploads
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.jobs.leases import HeldLease
from harnesslab.actions.projects import mirrors
from harnesslab.actions.reruns import lifecycle as reruns
from harnesslab.actions.trainings import iterations
from harnesslab.core.errors import HarnessLabError
from harnesslab.queue import TASK, app
from workers.tasks.certifications import run_certification
from workers.tasks.engines import run_probe
from workers.tasks.job_runs import JobRun
from workers.tasks.mirrors import run_mirror
from workers.tasks.mlflow_imports import run_mlflow_import
from workers.tasks.proposals import run_proposal
from workers.tasks.rollouts import run_rollout

log = logging.getLogger(__name__)

Work = Callable[[JobRun], dict[str, Any]]

KINDS: Mapping[str, Work] = {
    "import": lambda attempt: uploads.run_import(dict(attempt.payload), attempt.progress),
    reruns.KIND: run_rollout,
    engines.PROBE: run_probe,
    certifications.KIND: run_certification,
    iterations.PROPOSE: run_proposal,
    mirrors.KIND: run_mirror,
    mirrors.IMPORT: run_mlflow_import,
}
"""What each kind of job does."""
CLEANUPS: Mapping[str, Callable[[dict[str, Any]], None]] = {"import": uploads.discard_upload}
"""What is removed once a job of a kind has ended for good."""

_shutting_down = False


@app.task(name=TASK)
def run_job(job_id: int) -> None:
    """Make one attempt at a job, unless another worker has it or it has ended."""
    # a message that is dropped costs nothing: the row stays queued, and the sweeper wakes another worker
    if _shutting_down:
        return
    claimed = jobs.claim(job_id)
    if claimed is None:
        jobs.pass_on(job_id)
        return
    job, token = claimed
    log.info("job %s (%s): attempt %s", job.pk, job.kind, job.attempt)
    with HeldLease(job.pk, token, lambda: _shutting_down) as lease:
        _attempt(job.kind, job.payload, lease)
    if job.kind in CLEANUPS and jobs.has_ended(job.pk):
        CLEANUPS[job.kind](job.payload)
    if jobs.has_ended(job.pk):
        progress.after(job.group)
    if not _shutting_down:  # the sweeper wakes others
        jobs.wake_next(job.queue)


def _attempt(kind: str, payload: dict[str, Any], lease: HeldLease) -> None:
    """Do the work and record its end; an error becomes the job's sentence."""
    work = KINDS.get(kind)
    if work is None:
        jobs.fail(lease.job_id, lease.token, f"this version has no job of kind {kind!r}; it knows {_known()}")
        return
    try:
        result = work(JobRun(lease.job_id, payload, lease.progress, lease.stopped))
    except HarnessLabError as error:
        log.info("job %s failed: %s", lease.job_id, error.sentence)
        jobs.fail(lease.job_id, lease.token, error.sentence)
    except Exception as error:
        log.exception("job %s failed unexpectedly", lease.job_id)
        jobs.fail(lease.job_id, lease.token, f"{type(error).__name__}: {error}")
    else:
        _end(lease, result)


def _end(lease: HeldLease, result: dict[str, Any]) -> None:
    if not result.get("cancelled"):
        jobs.finish(lease.job_id, lease.token, result, lease.message)
    elif _shutting_down and not lease.refused:
        jobs.give_back(lease.job_id, lease.token)
    else:
        jobs.stop(lease.job_id, lease.token)


def _known() -> str:
    return ", ".join(sorted(KINDS))


@worker_shutting_down.connect
def _note_shutdown(**_: object) -> None:
    """Let the running job stop at its next progress, so that it is given back instead of waiting for its lease."""
    global _shutting_down
    _shutting_down = True
