"""Token efficiency and failure anatomy as JSON: the same read model as the page."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router

from harnesslab.actions.anatomies import prepare
from harnesslab.queries.efficiency import Efficiency, uncounted
from harnesslab.queries.efficiency import efficiency as numbers
from harnesslab.queries.efficiency_sides import Asked

router = Router()


@router.get("/efficiency", response=Efficiency)
def efficiency(request: HttpRequest) -> Efficiency:
    """One to eight experiments, `e=ID&e=ID`; `kind`, `answers` and `cases` as on the page."""
    asked = Asked.of(request.GET.getlist("e"), request.GET)
    return numbers(asked, prepare(uncounted(asked)))
