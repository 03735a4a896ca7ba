"""The Celery application of the workers: `celery -A workers.app worker -Q cpu --pool solo`."""

from __future__ import annotations

import os
import warnings

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harnesslab.settings")
django.setup()

from harnesslab.queue import app  # noqa: E402 - it reads the settings

# celery warns of root for the sake of pickle; messages here are JSON and hold a number
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
app.conf.worker_enable_remote_control = False  # nothing asks the workers anything; the rows say it all
app.conf.imports = ("workers.tasks.jobs",)

__all__ = ["app"]
