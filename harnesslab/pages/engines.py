"""Registered engines: what each is, how it stands, and what admins change of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from harnesslab.actions.engines import registration as actions
from harnesslab.actions.engines.slots import slots
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.natural import natural
from harnesslab.http_errors import status_of
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.render import render
from harnesslab.queries import engines as queries


def engines(request: HttpRequest) -> HttpResponse:
    """All engines, with the form that registers one."""
    return _list(request, {})


@require_POST
@needs("admin")
def engine_register(request: HttpRequest) -> HttpResponse:
    """Register an engine and queue its first probe."""
    form = {name: str(value) for name, value in request.POST.items()}
    try:
        made = actions.register(
            form.get("name", "").strip(),
            form.get("kind", ""),
            address=form.get("address", "").strip(),
            model=form.get("model", "").strip(),
            options=_options(form),
            ceiling=_ceiling(form),
            user=user_of(request),
        )
    except HarnessLabError as error:
        return _list(request, form, error)
    actions.ask_probe(made.pk, user=user_of(request))
    messages.success(request, f"{made.name} is registered; it is being probed.")
    return redirect("engine", made.pk)


def engine(request: HttpRequest, engine_id: int) -> HttpResponse:
    """One engine: its captured facts, what was probed, and what can be done with it."""
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
    }
    return render(request, "engines/engine.html", context)


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
    actions.set_ceiling(
        engine_id, _ceiling({name: str(value) for name, value in request.POST.items()}), user_of(request)
    )
    return redirect("engine", engine_id)


@require_POST
@needs("admin")
def engine_retire(request: HttpRequest, engine_id: int) -> HttpResponse:
    """Take it out of use."""
    actions.retire(engine_id, user_of(request))
    messages.success(request, "It is retired: nothing new runs on it, what it ran stays.")
    return redirect("engines")


def _list(request: HttpRequest, form: dict[str, str], error: HarnessLabError | None = None) -> HttpResponse:
    rows = queries.engines()
    counts = slots().counts([row.id for row in rows])
    context: dict[str, Any] = {
        "engines": [(row, *counts[row.id]) for row in rows],
        "up": sum(row.up is True for row in rows),
        "kinds": actions.KINDS,
        "form": {"kind": "openai", "ceiling": "1", **form},
        "error": error,
    }
    return render(request, "engines/list.html", context, status=status_of(error) if error is not None else 200)


def _options(form: Mapping[str, str]) -> dict[str, JSON]:
    text = form.get("options", "").strip()
    try:
        given = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}", where="options") from None
    if not isinstance(given, dict):
        raise InvalidValue("not an object", where="options", hint='such as {"seed_honoured": true}')
    variable = form.get("api_key_env", "").strip()
    return {**given, "api_key_env": variable} if variable else given


def _ceiling(form: Mapping[str, str]) -> int:
    number = natural(form.get("ceiling", "").strip())
    if number is None:
        raise InvalidValue(f"{form.get('ceiling', '')[:40]!r} is no whole number", where="ceiling")
    return number
