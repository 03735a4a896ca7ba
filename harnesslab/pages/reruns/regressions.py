"""Regression cases: made from a step of a rollout, measured under revisions of the harness."""

from __future__ import annotations

import secrets

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.actions.reruns.lifecycle import make_regression, measure_regression
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.core.running.recipe import SAME
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.render import render
from harnesslab.pages.reruns.plans import key_of
from harnesslab.queries.engines import engines
from harnesslab.queries.reruns import regressions as queries
from harnesslab.queries.rollouts.listing import get_rollout, row_of


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
        step = _whole(request.GET.get("step", "1"), "step")
        first = queries.suggestion(rollout_id, step - 1)
        form = {"step": str(step), "what": first.what, "tool": first.tool, "argument": first.argument}
        return _form(request, rollout_id, {**form, "holds": first.holds, "steps": "1"})
    form = {name: str(value) for name, value in request.POST.items()}
    try:
        case = make_regression(
            rollout_id,
            form.get("name", ""),
            _whole(form.get("step", ""), "step") - 1,
            _predicate(form),
            user_of(request),
        )
    except HarnessLabError as error:
        return _form(request, rollout_id, form, error)
    return redirect("regression", case.pk)


@require_POST
@needs("operator")
def regression_measure(request: HttpRequest, regression_id: int) -> HttpResponse:
    """Run a case live under a revision."""
    form = {name: str(value) for name, value in request.POST.items()}
    try:
        made = measure_regression(
            queries.get_regression(regression_id),
            revision=form.get("revision", "").strip(),
            attempts=_whole(form.get("attempts", ""), "attempts"),
            seed=form.get("seed") or SAME,
            user=user_of(request),
            key=key_of(form),
            engine=form.get("engine", "").strip(),
        )
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
        "engines": engines(),
        "form": form,
        "key": secrets.token_urlsafe(16),
        "error": error,
    }
    status = status_of(error) if error is not None else 200
    return render(request, "regressions/regression.html", context, status=status)


def _form(
    request: HttpRequest, rollout_id: int, form: dict[str, str], error: HarnessLabError | None = None
) -> HttpResponse:
    context = {
        "rollout": row_of(get_rollout(rollout_id)),
        "form": form,
        "whats": [what.value for what in What],
        "error": error,
    }
    status = status_of(error) if error is not None else 200
    return render(request, "regressions/form.html", context, status=status)


def _predicate(form: dict[str, str]) -> Predicate:
    what = form.get("what", "")
    if what not in tuple(What):
        raise InvalidValue(f"{what[:40]!r} is none", where="what", hint=f"one of {', '.join(What)}")
    return Predicate(
        what=What(what),
        tool=form.get("tool", "").strip(),
        argument=form.get("argument", "").strip(),
        holds=form.get("holds", ""),
        steps=_whole(form.get("steps", "1"), "steps"),
    ).checked()


def _whole(text: str, where: str) -> int:
    number = natural(text.strip())
    if not number:
        raise InvalidValue(f"{text[:40]!r} is no whole number from 1", where=where)
    return number
