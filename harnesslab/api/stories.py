"""Stories, experiments side by side and evaluation grids as JSON: the read models of the pages."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from harnesslab.queries.experiments.comparison import ExperimentComparison, experiment_ids
from harnesslab.queries.experiments.comparison import compare_experiments as side_by_side
from harnesslab.queries.experiments.grids import Grid
from harnesslab.queries.experiments.grids import grid as numbers
from harnesslab.queries.projects.home import project_asked
from harnesslab.queries.stories.story import Story
from harnesslab.queries.stories.story import story as told

router = Router()


@router.get("/projects/{int:project_id}/story", response=Story)
def story(request: HttpRequest, project_id: int, by: str = "") -> Story:
    """A project's experiments in order; `by` is `solved`, `common` or `metric:NAME`. Places count from 0."""
    return told(project_id, by)


@router.get("/experiments/compare", response=ExperimentComparison)
def compare(request: HttpRequest) -> ExperimentComparison:
    """Two to eight experiments, `e=ID&e=ID`, against the first."""
    return side_by_side(experiment_ids(request.GET.getlist("e")))


@router.get("/experiments/grid", response=Grid)
def grid(request: HttpRequest, project: str = "", *, subtract: bool = False) -> Grid:
    """Models × revisions of a project, by its id or name; `r` chooses revisions."""
    return numbers(project_asked(project), request.GET.getlist("r"), subtract=subtract)
