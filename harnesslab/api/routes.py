"""The routes of /api/v1/: the same read models as the pages, in the same query language."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import File, Form, NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.files import UploadedFile
from ninja.parser import Parser

from harnesslab.actions.comparisons import compare
from harnesslab.actions.imports.uploads import receive
from harnesslab.actions.instance_key import instance_signer
from harnesslab.actions.jobs.lifecycle import cancel
from harnesslab.api import efficiency, engines, measurements, reruns, stories, trainings
from harnesslab.api.permissions import require
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.errors import HarnessLabError
from harnesslab.http_errors import status_of
from harnesslab.queries.bundles import bundle_of
from harnesslab.queries.comparisons.result import ComparisonResult
from harnesslab.queries.jobs.listing import JobRow, job_row
from harnesslab.queries.projects.home import Home, home
from harnesslab.queries.rollouts.accounts import RolloutWithAccount, rollout_with_account
from harnesslab.queries.rollouts.events import EventDetail, EventWindow, event_detail, event_window
from harnesslab.queries.rollouts.filters import RolloutFilter
from harnesslab.queries.rollouts.listing import (
    GroupPage,
    RolloutPage,
    get_rollout,
    group_page,
    rollout_page,
)
from harnesslab.queries.rollouts.manifests import find_manifest, manifest_bytes
from harnesslab.queries.rollouts.requests import RequestDetail, RequestPage, request_detail, request_page
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

LONGEST = 4000
"""Digits of a whole number."""


class Bodies(Parser):
    """Leaves numbers of so many digits that Python makes none of them as text, so that their field refuses them."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return a body's JSON."""
        return json.loads(request.body, parse_int=lambda digits: int(digits) if len(digits) <= LONGEST else digits)


api = NinjaAPI(title="HarnessLab", version="1", urls_namespace="api", docs_url=None, parser=Bodies())


api.add_router("", reruns.router)
api.add_router("", measurements.router)
api.add_router("", trainings.router)
api.add_router("", engines.router)
api.add_router("", efficiency.router)
api.add_router("", stories.router)


@api.exception_handler(HarnessLabError)
def domain_error(request: HttpRequest, error: HarnessLabError) -> HttpResponse:
    """Answer an expected error with its sentence."""
    return api.create_response(request, {"error": error.sentence}, status=status_of(error))


@api.exception_handler(ValidationError)
def wrong_type(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Answer parameters of the wrong type with one sentence, as everything else."""
    said = (f"{item['loc'][-1]}: {item['msg'][:1].lower()}{item['msg'][1:]}" for item in error.errors)
    return api.create_response(request, {"error": "; ".join(said)}, status=422)


@api.exception_handler(HttpError)
def refused(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer what a role may not do."""
    return api.create_response(request, {"error": error.message}, status=error.status_code)


@api.get("/projects", response=Home)
def projects(request: HttpRequest) -> Home:
    """All projects with counts and recent imports."""
    return home()


@api.get("/rollouts", response=RolloutPage | GroupPage)
def rollouts(request: HttpRequest) -> RolloutPage | GroupPage:
    """Rollouts under the same filters as the list page; `after` is the previous page's `next`."""
    chosen = RolloutFilter.of(request.GET)
    after = request.GET.get("after", "")
    return group_page(chosen, after) if chosen.by == "case" else rollout_page(chosen, after)


@api.get("/rollouts/{int:rollout_id}", response=RolloutWithAccount)
def rollout(request: HttpRequest, rollout_id: int) -> RolloutWithAccount:
    """One rollout, with how its source became its trace."""
    return rollout_with_account(rollout_id)


@api.get("/rollouts/{int:rollout_id}/events", response=EventWindow)
def events(request: HttpRequest, rollout_id: int, start: int = 0) -> EventWindow:
    """A window of a rollout's events."""
    return event_window(StoredTraceReader(get_rollout(rollout_id)), start)


@api.get("/rollouts/{int:rollout_id}/events/{int:index}", response=EventDetail)
def event(request: HttpRequest, rollout_id: int, index: int) -> EventDetail:
    """One event, its long payloads cut to previews."""
    return event_detail(StoredTraceReader(get_rollout(rollout_id)), index)


@api.get("/rollouts/{int:rollout_id}/bundle")
def bundle(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """One rollout as a bundle."""
    return HttpResponse(bundle_of(rollout_id, instance_signer()), content_type="application/zip")


@api.get("/manifests/{digest}")
def manifest(request: HttpRequest, digest: str) -> HttpResponse:
    """A manifest's canonical bytes."""
    return HttpResponse(manifest_bytes(find_manifest(digest)), content_type="application/json")


@api.get("/comparisons", response=ComparisonResult)
def comparisons(
    request: HttpRequest, a: int, b: int, level: str = "", rules: str = "", only: str = ""
) -> ComparisonResult:
    """Two rollouts compared; `rules` is `none` or names, all by default; `only=tool-calls` narrows it."""
    return compare(a, b, Contract.parse(level, rules, only)).result


@api.get("/requests", response=RequestPage)
def requests(request: HttpRequest, offset: int = 0, *, unstable: bool = False) -> RequestPage:
    """Requests that were sent more than once."""
    return request_page(offset, unstable_only=unstable)


@api.get("/requests/{digest}", response=RequestDetail)
def request_answers(request: HttpRequest, digest: str) -> RequestDetail:
    """One request with its distinct answers."""
    return request_detail(digest)


@api.post("/imports", response={200: dict[str, Any]})
def imports(request: HttpRequest, files: File[list[UploadedFile]], project: Form[str] = "") -> dict[str, Any]:
    """Import files sent as multipart `files`; large ones answer with a job."""
    user = require(request, "operator")
    return {"results": receive(files, project, user)}


@api.get("/jobs/{int:job_id}", response=JobRow)
def job(request: HttpRequest, job_id: int) -> JobRow:
    """One job."""
    return job_row(job_id)


@api.post("/jobs/{int:job_id}/cancel", response=JobRow)
def job_cancel(request: HttpRequest, job_id: int) -> JobRow:
    """Ask a job to stop."""
    require(request, "operator")
    cancel(job_id)
    return job_row(job_id)
