"""Regression cases: made from a step of a rollout, measured under revisions of the harness."""

from __future__ import annotations

import secrets

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.actions.reruns.lifecycle import make_regression, measure_regression
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.predicates import What
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.forms import form_values, key_of, read, refusal
from harnesslab.pages.render import render
from harnesslab.pages.reruns.choices import SEEDS, engine_choices
from harnesslab.queries.reruns import regressions as queries
from harnesslab.queries.rollouts.listing import get_rollout, row_of
from harnesslab.requests.reruns import PredicateRequest, RegressionMeasurementRequest, RegressionRequest


def regressions(request: HttpRequest) -> HttpResponse:
    """All regression cases."""
    return render(request, "regressions/list.html", {"cases": queries.regressions()})


def regression(request: HttpRequest, regression_id: int) -> HttpResponse:
    """One regression case with its measurements; asked again every other second until the last has ended."""
    if asks_for_part(request):
        case = queries.regression(regression_id)
        status = 200 if case.running else 286
        return render(request, "regressions/_measured.html", {"case": case}, status=status)
    return _page(request, regression_id, {"attempts": "10", "seed": "drawn"})


@needs("operator")
def regression_form(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """The form that makes a case from a step; with POST, makes it."""
    if request.method != "POST":
        step = natural(request.GET.get("step", "1").strip())
        if not step:
            raise InvalidValue("that is no whole number from 1", where="step")
        first = queries.suggestion(rollout_id, step - 1)
        form = {"step": str(step), "what": first.what, "tool": first.tool, "argument": first.argument}
        return _form(request, rollout_id, {**form, "holds": first.holds, "steps": "1"})
    form = request.POST.dict()
    predicate = {name: form[name] for name in PredicateRequest.model_fields if name in form}
    document = {**form_values(RegressionRequest, form), "predicate": predicate}
    try:
        asked = read(RegressionRequest, document, {f"predicate.{name}": name for name in PredicateRequest.model_fields})
        case = make_regression(
            rollout_id, asked.name, asked.from_step, asked.predicate.to_predicate(), user_of(request)
        )
    except HarnessLabError as error:
        return _form(request, rollout_id, form, error)
    return redirect("regression", case.pk)


@require_POST
@needs("operator")
def regression_measure(request: HttpRequest, regression_id: int) -> HttpResponse:
    """Run a case live under a revision."""
    form = request.POST.dict()
    try:
        asked = read(RegressionMeasurementRequest, form_values(RegressionMeasurementRequest, form))
        case = queries.get_regression(regression_id)
        made = measure_regression(case, asked, user=user_of(request), key=key_of(form))
    except HarnessLabError as error:
        return _page(request, regression_id, form, error)
    return redirect("rerun", made.pk)


def _page(
    request: HttpRequest, case_id: int, form: dict[str, str], error: HarnessLabError | None = None
) -> HttpResponse:
    case = queries.regression(case_id)
    context = {
        "case": case,
        "prefix": queries.prefix(case),
        "engines": [("", "as recorded"), *engine_choices()],
        "seeds": SEEDS[:2],
        "key": secrets.token_urlsafe(16),
        **refusal(error, form),
    }
    status = status_of(error) if error is not None else 200
    return render(request, "regressions/regression.html", context, status=status)


def _form(
    request: HttpRequest, rollout_id: int, form: dict[str, str], error: HarnessLabError | None = None
) -> HttpResponse:
    context = {
        "rollout": row_of(get_rollout(rollout_id)),
        "whats": [what.value for what in What],
        **refusal(error, form),
    }
    status = status_of(error) if error is not None else 200
    return render(request, "regressions/form.html", context, status=status)
