"""The job that copies what is missing of a project to its MLflow server."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings

from harnesslab.actions.projects import mirrors
from harnesslab.config import served_at
from harnesslab.core.errors import NotFound
from harnesslab.queries.mirrors import (
    MirrorTarget,
    get_target,
    mirrored_run,
    run_document,
    trace_document,
    waiting_experiments,
    waiting_rollouts,
)
from harnesslab.runtime.mirror.server import ROLLOUT_TAG, MirrorFailed, TrackingServer
from workers.tasks.job_runs import JobRun


def run_mirror(attempt: JobRun) -> dict[str, Any]:
    """Copy experiments as runs, then rollouts as traces of their runs; a pass that was killed is taken up."""
    mirror = get_target(int(attempt.payload["mirror"]))
    try:
        done = _Pass(mirror, attempt).go()
    except MirrorFailed as error:
        mirrors.note_pass(mirror.id, error.sentence)
        raise
    if attempt.stopped():
        return {"cancelled": True}
    mirrors.note_pass(mirror.id, f"copied {done} experiments and rollouts")
    return {"copied": done}


class _Pass:
    """One pass over what is missing."""

    def __init__(self, mirror: MirrorTarget, attempt: JobRun) -> None:
        self._mirror, self._attempt = mirror, attempt
        self._server = TrackingServer(mirror.address)
        self._where = self._server.experiment(mirror.name)
        self._base = served_at(settings.CONFIG.home)
        self._done = 0

    def go(self) -> int:
        """Copy until nothing is missing or it is stopped; returns how much was copied."""
        for experiment in waiting_experiments(self._mirror.id, self._mirror.project):
            if self._attempt.stopped():
                return self._done
            with suppress(NotFound):  # deleted meanwhile
                self._run(experiment)
        for rollout in waiting_rollouts(self._mirror.id, self._mirror.project):
            if self._attempt.stopped():
                return self._done
            with suppress(NotFound):
                self._trace(rollout)
        return self._done

    def _run(self, experiment: int) -> None:
        document = run_document(experiment, f"{self._base}/experiments/{experiment}/")
        key = f"{document.name} {experiment}"
        run = self._server.run_of(self._where, key) or self._server.make_run(
            self._where, key, document.name, document.start
        )
        self._server.fill_run(run, document.params, document.metrics, document.tags, document.documents, document.end)
        mirrors.note_made(self._mirror.id, run, experiment=experiment)
        self._tell(document.name)

    def _trace(self, rollout: int) -> None:
        document = trace_document(rollout, f"{self._base}/rollouts/{rollout}/")
        key = f"{document.seal} {rollout}"
        made = self._server.trace_of(self._where, key)
        if not made:
            run = mirrored_run(self._mirror.id, document.experiment)
            tags = {**document.tags, ROLLOUT_TAG: key}
            made = self._server.make_trace(
                self._where, run, document.root, tags, document.start, failed=document.failed
            )
        mirrors.note_made(self._mirror.id, made, rollout=rollout)
        self._tell(document.root.name)

    def _tell(self, what: str) -> None:
        self._done += 1
        self._attempt.progress(self._done, f"copied {what}")
