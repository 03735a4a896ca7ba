"""Asking for reruns, and what came of them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from harnesslab.actions.reruns import lifecycle as actions
from harnesslab.core.errors import HarnessLabError, InvalidValue, NotFound
from harnesslab.core.natural import natural
from harnesslab.core.running.rerun import RerunPlan, Switch
from harnesslab.http_errors import status_of
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.forms import key_of, refusal
from harnesslab.pages.render import render
from harnesslab.pages.reruns.choices import MISSES, SEEDS, engine_choices
from harnesslab.pages.reruns.plan_words import DOES, PROVES, plan_words
from harnesslab.pages.reruns.plans import SWITCH, form_of, plan_from_form
from harnesslab.queries.reruns.listing import RerunView, plan_from, recent_reruns, rerun_view
from harnesslab.queries.reruns.previews import Preview, preview, together
from harnesslab.queries.rollouts.consistency import check_consistency
from harnesslab.queries.rollouts.events import latest_events

MOST = 20
"""Rollouts that one form asks reruns of."""


def reruns(request: HttpRequest) -> HttpResponse:
    """All reruns, newest first, or those that `ids` names."""
    ids = _ids(request)
    return render(request, "reruns/list.html", {"reruns": recent_reruns(ids), "chosen": ids})


@needs("operator")
def rerun_form(request: HttpRequest, rollout_id: int | None = None) -> HttpResponse:
    """The form for one rollout, or for those that `ids` names; with POST, asks for one rerun of each."""
    ids = [rollout_id] if rollout_id is not None else _ids(request)
    if not 1 <= len(ids) <= MOST:
        raise InvalidValue(f"{len(ids)} rollouts to rerun", hint=f"tick from 1 to {MOST} in the list")
    if request.method == "POST":
        return _ask(request, ids)
    return _form(request, ids, request.GET.dict(), secrets.token_urlsafe(16))


def rerun(request: HttpRequest, rerun_id: int) -> HttpResponse:
    """One rerun; asked again every second until it has ended (286 tells htmx to stop)."""
    try:
        view = rerun_view(rerun_id)
    except NotFound as error:
        if not asks_for_part(request):
            raise
        return render(request, "reruns/_gone.html", {"error": error}, status=286)
    plan = plan_from(view.plan)
    running = next((row for row in view.attempts if row.rollout and row.rollout.outcome == "running"), None)
    context = {
        "rerun": view,
        "plan": plan_words(plan),
        "proves": PROVES[plan.mode],
        "running": running,
        "tail": latest_events(running.rollout.id) if running and running.rollout else [],
        "again": _again(view),
    }
    if asks_for_part(request):
        return render(request, "reruns/_rerun.html", context, status=286 if view.ended else 200)
    return render(request, "reruns/rerun.html", context)


@require_POST
@needs("operator")
def rerun_cancel(request: HttpRequest, rerun_id: int) -> HttpResponse:
    """Ask all attempts to stop."""
    asked = actions.cancel(rerun_id)
    said = f"{asked} attempt{'s were' if asked != 1 else ' was'} asked to stop."
    messages.success(request, said if asked else "Every attempt had ended already.")
    return redirect("rerun", rerun_id)


@require_POST
@needs("viewer")
def consistency(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """Verify a stored trace against its own seals and its kept path, now."""
    found = check_consistency(rollout_id)
    if asks_for_part(request):
        return render(request, "rollouts/_consistency.html", {"found": found})
    (messages.success if found.consistent else messages.error)(request, found.sentence)
    return redirect("rollout", rollout_id)


def _ask(request: HttpRequest, ids: Sequence[int]) -> HttpResponse:
    """Ask for one rerun of each rollout; the form's key makes a second click find the same ones."""
    form = request.POST.dict()
    values = {name: str(value) for name, value in form.items()}
    key = key_of(values)
    made: list[int] = []
    refused: list[tuple[int, HarnessLabError]] = []
    for rollout_id in ids:
        try:
            own = key if len(ids) == 1 else f"{key} {rollout_id}"
            made.append(actions.request(rollout_id, plan_from_form(values), user=user_of(request), key=own).pk)
        except HarnessLabError as error:
            refused.append((rollout_id, error))
    if not made:
        return _form(request, ids, values, secrets.token_urlsafe(16), refused[0][1])
    for rollout_id, why in refused:
        messages.error(request, f"Rollout {rollout_id} is not rerun: {why.sentence}")
    if len(made) == 1:
        return redirect("rerun", made[0])
    return redirect(f"{reverse('reruns')}?ids={','.join(map(str, made))}")


def _form(
    request: HttpRequest, ids: Sequence[int], values: dict[str, Any], key: str, error: HarnessLabError | None = None
) -> HttpResponse:
    form = {name: str(value) for name, value in values.items()}
    previews, plan, wrong = _previews(ids, form)
    here = reverse("rerun-form", args=[ids[0]]) if len(ids) == 1 else reverse("rerun-several")
    context = {
        "here": here,
        "ids": ",".join(map(str, ids)) if len(ids) > 1 else "",
        **refusal(error, {"mode": "live", "seed": "same", "attempts": "1", "on_miss": "stop", **form}),
        "key": key,
        "previews": previews,
        "first": previews[0],
        "boundaries": _boundaries(previews, form),
        "sentence": together([item for item in previews if not item.refused], plan) if plan is not None else "",
        "able": sum(not item.refused for item in previews),
        "refused": [(item.rollout, item.refused, item.nearest) for item in previews if item.refused] if plan else [],
        "wrong": "" if error is not None else wrong,
        "engines": [
            ("", f"as recorded{f' ({previews[0].rollout.engine})' if previews[0].rollout.engine else ''}"),
            *engine_choices(),
        ],
        "seeds": SEEDS,
        "misses": MISSES,
        "modes": [(mode.value, f"{text} {PROVES[mode]}") for mode, text in DOES.items()],
        "mode": plan.mode.value if plan is not None else form.get("mode", "live"),
        "external": sorted({name for item in previews for name in item.external}),
        "others": _others(form),
    }
    if asks_for_part(request):
        return render(request, "reruns/_preview.html", context)
    return render(request, "reruns/form.html", context, status=status_of(error) if error is not None else 200)


def _previews(ids: Sequence[int], form: dict[str, str]) -> tuple[list[Preview], RerunPlan | None, str]:
    """Return what the form's plan would do, or with what is wrong with it, what a plain one would."""
    wrong, plan = "", None
    try:
        plan = plan_from_form(form)
    except InvalidValue as error:
        wrong = error.sentence
    return [preview(rollout_id, plan or plan_from_form({})) for rollout_id in ids], plan, wrong


def _boundaries(previews: Sequence[Preview], form: dict[str, str]) -> list[dict[str, Any]]:
    """Return the boundaries of the recordings, each with its switches and which is on."""
    found: dict[str, dict[str, Any]] = {}
    for item in (boundary for each in previews for boundary in each.boundaries):
        known = found.setdefault(
            item.name, {"name": item.name, "events": 0, "why": item.why, "switches": item.switches}
        )
        known["events"] += item.events
        known["switches"] = [switch for switch in known["switches"] if switch in item.switches]
        known["on"] = form.get(f"{SWITCH}{item.name}") or Switch.RECORDED.value
    return list(found.values())


def _again(view: RerunView) -> str:
    """Return the form's query for the same plan once more."""
    return urlencode(form_of(plan_from(view.plan)))


def _others(form: dict[str, str]) -> str:
    """Return the form as a query without the step, for links that suggest another."""
    return urlencode({name: value for name, value in form.items() if value and name not in ("step", "key", "ids")})


def _ids(request: HttpRequest) -> list[int]:
    """Read the ids that the query names: `ids=1,2`, or `ids` several times."""
    given = [part for text in request.GET.getlist("ids") for part in text.split(",") if part]
    numbers = [natural(part) for part in given]
    if None in numbers:
        raise InvalidValue("not a list of ids", where="ids", hint="numbers with commas between")
    return list(dict.fromkeys(number for number in numbers if number is not None))
