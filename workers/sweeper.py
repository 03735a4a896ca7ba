"""The process that brings back the jobs of lost workers: `python -m workers.sweeper`."""

from __future__ import annotations

import logging
import os
import signal
import threading

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harnesslab.settings")
django.setup()

from django.db import DatabaseError, close_old_connections, connection  # noqa: E402

from harnesslab.actions.imports.uploads import discard_abandoned  # noqa: E402
from harnesslab.actions.jobs.lifecycle import sweep  # noqa: E402
from harnesslab.actions.progress import follow_up  # noqa: E402
from harnesslab.actions.reruns.job_specs import interrupt_abandoned  # noqa: E402
from harnesslab.actions.rollouts.recount import Recounting  # noqa: E402

EVERY_S = 2.0
log = logging.getLogger("workers.sweeper")
recounting = Recounting()


def main() -> None:
    """Sweep every two seconds until told to stop."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    log.info("sweeping every %g s", EVERY_S)
    while not stopping.wait(EVERY_S):
        tick()


def tick() -> None:
    """Sweep once; a database that is away for a moment is a warning."""
    close_old_connections()
    try:
        expired = sweep()
        discard_abandoned()
        interrupt_abandoned()
        follow_up()
        recounting.some()
    except DatabaseError as error:
        log.warning("could not sweep: %s", error)
        connection.close()
        return
    if expired:
        log.warning("%s jobs of lost workers", expired)


if __name__ == "__main__":
    main()
