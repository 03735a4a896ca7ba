"""Routes of reruns, regression cases and consistency; plans are JSON, and steps count from 0."""

from __future__ import annotations

import msgspec
from django.http import HttpRequest
from ninja import Router, Status

from harnesslab.actions.reruns import lifecycle as actions
from harnesslab.api.cancelling import Cancelled
from harnesslab.api.keys import key_of
from harnesslab.api.permissions import require
from harnesslab.core.errors import InvalidValue
from harnesslab.queries.reruns.listing import RerunView, recent_reruns, rerun_view, reruns_of
from harnesslab.queries.reruns.previews import Preview, preview
from harnesslab.queries.reruns.regressions import RegressionRow, get_regression, regression, regressions
from harnesslab.queries.rollouts.consistency import Consistency, check_consistency
from harnesslab.requests.reruns import RegressionMeasurementRequest, RegressionRequest, RerunRequest

router = Router()


@router.post("/rollouts/{int:rollout_id}/reruns", response={201: RerunView})
def rerun_new(request: HttpRequest, rollout_id: int, plan: RerunRequest) -> Status[RerunView]:
    """Ask for a rerun; the same key gives the one that is already there."""
    user = require(request, "operator")
    made = actions.request(rollout_id, plan.to_plan(), user=user, key=key_of(request))
    return Status(201, rerun_view(made.pk))


@router.get("/rollouts/{int:rollout_id}/reruns", response=list[RerunView])
def reruns_of_rollout(request: HttpRequest, rollout_id: int) -> list[RerunView]:
    """The reruns of a rollout, newest first."""
    return reruns_of(rollout_id)


@router.get("/rollouts/{int:rollout_id}/rerun-preview", response=Preview)
def rerun_preview(request: HttpRequest, rollout_id: int, plan: str = '{"mode":"live"}') -> Preview:
    """What a plan, given as JSON, would do and cost, and why it can't be run."""
    try:
        document = msgspec.json.decode(plan)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}", where="plan") from None
    return preview(rollout_id, RerunRequest.model_validate(document).to_plan())


@router.get("/rollouts/{int:rollout_id}/consistency", response=Consistency)
def consistency(request: HttpRequest, rollout_id: int) -> Consistency:
    """Verify a stored trace against its own seals and its kept path, now."""
    return check_consistency(rollout_id)


@router.get("/reruns", response=list[RerunView])
def reruns(request: HttpRequest) -> list[RerunView]:
    """The newest reruns."""
    return recent_reruns()


@router.get("/reruns/{int:rerun_id}", response=RerunView)
def rerun(request: HttpRequest, rerun_id: int) -> RerunView:
    """One rerun with its attempts and what it found."""
    return rerun_view(rerun_id)


@router.post("/reruns/{int:rerun_id}/cancel", response=Cancelled)
def rerun_cancel(request: HttpRequest, rerun_id: int) -> dict[str, int]:
    """Ask all attempts to stop."""
    require(request, "operator")
    return {"asked": actions.cancel(rerun_id)}


@router.post("/rollouts/{int:rollout_id}/regressions", response={201: RegressionRow})
def regression_new(request: HttpRequest, rollout_id: int, case: RegressionRequest) -> Status[RegressionRow]:
    """Make a regression case from a step."""
    user = require(request, "operator")
    predicate = case.predicate.to_predicate()
    made = actions.make_regression(rollout_id, case.name, case.from_step, predicate, user)
    return Status(201, regression(made.pk))


@router.get("/regressions", response=list[RegressionRow])
def regression_list(request: HttpRequest) -> list[RegressionRow]:
    """The newest regression cases."""
    return regressions()


@router.get("/regressions/{int:case_id}", response=RegressionRow)
def regression_one(request: HttpRequest, case_id: int) -> RegressionRow:
    """One regression case with its measurements."""
    return regression(case_id)


@router.post("/regressions/{int:case_id}/measure", response={201: RerunView})
def regression_measure(
    request: HttpRequest, case_id: int, measurement: RegressionMeasurementRequest
) -> Status[RerunView]:
    """Run a regression case live under a revision of the harness."""
    user = require(request, "operator")
    made = actions.measure_regression(get_regression(case_id), measurement, user=user, key=key_of(request))
    return Status(201, rerun_view(made.pk))
