"""Token efficiency and failure anatomy as JSON: the same read model as the page."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from harnesslab.actions.rollouts.trace_statistics import prepare
from harnesslab.queries.efficiency.page import Efficiency, uncounted
from harnesslab.queries.efficiency.page import efficiency as numbers
from harnesslab.queries.experiments.sums import EfficiencyQuery

router = Router()


@router.get("/efficiency", response=Efficiency)
def efficiency(request: HttpRequest) -> Efficiency:
    """One to eight experiments, `e=ID&e=ID`; `kind`, `answers` and `cases` as on the page."""
    asked = EfficiencyQuery.of(request.GET.getlist("e"), request.GET)
    return numbers(asked, prepare(uncounted(asked)))
