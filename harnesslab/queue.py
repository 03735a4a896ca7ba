"""Wakes a worker for a job that waits; the row is the truth, so a lost wake-up costs time and nothing else."""

from __future__ import annotations

import logging

from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

from harnesslab.config import Config

TASK = "harnesslab.run_job"
log = logging.getLogger(__name__)


def application(config: Config) -> Celery:
    """Return the Celery application over Redis, or over a folder where there is no Redis."""
    app = Celery("harnesslab", set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        task_default_queue="cpu",
        task_serializer="json",
        accept_content=["json"],
    )
    if config.redis_url:
        app.conf.update(broker_url=config.redis_url)
        return app
    spool = config.home / "broker"
    for name in ("queue", "processed", "control"):
        (spool / name).mkdir(parents=True, exist_ok=True)
    folders = {
        # the same folder both ways: kombu writes to the one and reads from the other, and moves nothing between them
        "data_folder_in": str(spool / "queue"),
        "data_folder_out": str(spool / "queue"),
        "processed_folder": str(spool / "processed"),
        "control_folder": str(spool / "control"),
        "store_processed": False,
        "polling_interval": 0.05,  # the default takes seconds to notice a message
    }
    app.conf.update(broker_url="filesystem://localhost", broker_transport_options=folders)
    return app


app = application(settings.CONFIG)


def wake(job_id: int, queue_name: str) -> None:
    """Tell the workers of a queue that a job waits; the sweeper wakes them again where this fails."""
    try:
        app.send_task(TASK, args=[job_id], queue=queue_name, ignore_result=True, retry=False)
    except (OperationalError, OSError) as error:
        log.warning("could not wake a worker for job %s: %s", job_id, error)
