"""The queue."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.actions.jobs.lifecycle import cancel
from harnesslab.pages.access import asks_for_part, needs
from harnesslab.pages.render import render
from harnesslab.queries.jobs.listing import job_row, queue_page


def jobs(request: HttpRequest) -> HttpResponse:
    """What runs, what waits, what has ended; the page refreshes itself."""
    kind = request.GET.get("kind", "").replace("\x00", "")[:40]
    template = "jobs/_table.html" if asks_for_part(request) else "jobs/list.html"
    return render(request, template, {"queue": queue_page(kind), "kind": kind})


def job(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job; asked again every second until it has ended (286 tells htmx to stop)."""
    row = job_row(job_id)
    if asks_for_part(request):
        return render(request, "jobs/_job.html", {"job": row}, status=286 if row.ended else 200)
    return render(request, "jobs/job.html", {"job": row})


@require_POST
@needs("operator")
def job_cancel(request: HttpRequest, job_id: int) -> HttpResponse:
    """Ask a job to stop."""
    cancel(job_id)
    return redirect("job", job_id)
