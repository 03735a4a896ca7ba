"""Routes of engines and of the queue."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status

from harnesslab.actions.engines.registration import ask_probe
from harnesslab.api.permissions import require
from harnesslab.queries.engines import EngineRow, engine_row, engines
from harnesslab.queries.jobs.listing import JobRow, QueuePage, job_row, queue_page

router = Router()


@router.get("/engines", response=list[EngineRow])
def engine_list(request: HttpRequest) -> list[EngineRow]:
    """The registered engines."""
    return engines()


@router.get("/engines/{int:engine_id}", response=EngineRow)
def engine(request: HttpRequest, engine_id: int) -> EngineRow:
    """One engine with what it reported and what was probed."""
    return engine_row(engine_id)


@router.post("/engines/{int:engine_id}/probe", response={202: JobRow})
def engine_probe(request: HttpRequest, engine_id: int) -> Status[JobRow]:
    """Queue a probe; one that waits already is enough."""
    user = require(request, "operator")
    return Status(202, job_row(ask_probe(engine_id, user=user).pk))


@router.get("/jobs", response=QueuePage)
def jobs(request: HttpRequest, kind: str = "") -> QueuePage:
    """What runs, what waits with its place, and what has ended."""
    return queue_page(kind.replace("\x00", "")[:40])
