"""Registered engines: what each is, how it stands, and what admins change of it."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.actions.engines import registration as actions
from harnesslab.actions.engines.slots import slots
from harnesslab.core.errors import HarnessLabError
from harnesslab.http_errors import status_of
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.forms import form_values, read, refusal
from harnesslab.pages.render import render
from harnesslab.queries import engines as queries
from harnesslab.requests.engines import KINDS, CeilingRequest, EngineRequest


def engines(request: HttpRequest) -> HttpResponse:
    """All engines, with the form that registers one."""
    return _list(request, {})


@require_POST
@needs("admin")
def engine_register(request: HttpRequest) -> HttpResponse:
    """Register an engine and queue its first probe."""
    form = request.POST.dict()
    try:
        made = actions.register(read(EngineRequest, form_values(EngineRequest, form)), user_of(request))
    except HarnessLabError as error:
        return _list(request, form, error)
    actions.ask_probe(made.pk, user=user_of(request))
    messages.success(request, f"{made.name} is registered; it is being probed.")
    return redirect("engine", made.pk)


def engine(request: HttpRequest, engine_id: int) -> HttpResponse:
    """One engine: its captured facts, what was probed, and what can be done with it."""
    return _engine(request, engine_id)


@require_POST
@needs("operator")
def engine_check(request: HttpRequest, engine_id: int) -> HttpResponse:
    """Queue a probe."""
    job = actions.ask_probe(engine_id, user=user_of(request))
    messages.success(request, f"It is checked again by job {job.pk}.")
    return redirect("engine", engine_id)


@require_POST
@needs("admin")
def engine_ceiling(request: HttpRequest, engine_id: int) -> HttpResponse:
    """Set how many requests it gets at a time."""
    form = request.POST.dict()
    try:
        asked = read(CeilingRequest, form_values(CeilingRequest, form))
    except HarnessLabError as error:
        return _engine(request, engine_id, form, error)
    actions.set_ceiling(engine_id, asked.ceiling, user_of(request))
    return redirect("engine", engine_id)


@require_POST
@needs("admin")
def engine_retire(request: HttpRequest, engine_id: int) -> HttpResponse:
    """Take it out of use."""
    actions.retire(engine_id, user_of(request))
    messages.success(request, "It is retired: nothing new runs on it, what it ran stays.")
    return redirect("engines")


def _engine(
    request: HttpRequest, engine_id: int, form: dict[str, str] | None = None, error: HarnessLabError | None = None
) -> HttpResponse:
    row = queries.engine_row(engine_id)
    running, waiting = slots().counts([row.id])[row.id]
    probed = row.probe.get("sentences")
    context = {
        "engine": row,
        "running": running,
        "waiting": waiting,
        "facts": queries.facts_of(row),
        "probed": probed if isinstance(probed, list) else [],
        "options": json.dumps(row.options, ensure_ascii=False, sort_keys=True) if row.options else "",
        **refusal(error, form or {"ceiling": str(row.ceiling)}),
    }
    return render(request, "engines/engine.html", context, status=status_of(error) if error is not None else 200)


def _list(request: HttpRequest, form: dict[str, str], error: HarnessLabError | None = None) -> HttpResponse:
    rows = queries.engines()
    counts = slots().counts([row.id for row in rows])
    context: dict[str, Any] = {
        "engines": [(row, *counts[row.id]) for row in rows],
        "up": sum(row.up is True for row in rows),
        "kinds": KINDS,
        **refusal(error, {"kind": "openai", "ceiling": "1", **form}),
    }
    return render(request, "engines/list.html", context, status=status_of(error) if error is not None else 200)
