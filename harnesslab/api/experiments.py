"""Routes of experiments: the same filters and read models as the pages."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.queries.experiments.listing import ExperimentPage, ExperimentView, experiment_page, experiment_view

router = Router()


@router.get("/experiments", response=ExperimentPage)
def experiments(request: HttpRequest) -> ExperimentPage:
    """Experiments, newest first; filters are `project`, `kind`, `decision`, and `after` is the previous `next`."""
    return experiment_page(ExperimentFilter.of(request.GET), request.GET.get("after", ""))


@router.get("/experiments/{int:experiment_id}", response=ExperimentView)
def experiment(request: HttpRequest, experiment_id: int) -> ExperimentView:
    """One experiment with its cases, decision, certificates and facts."""
    return experiment_view(experiment_id)
