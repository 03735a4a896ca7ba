"""The rollouts list and one rollout."""

from __future__ import annotations

from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from harnesslab.actions.annotations import add_note, delete_rollout, save_view
from harnesslab.actions.projects.moving import move as move_rollouts
from harnesslab.actions.projects.moving import of_same_file
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.natural import natural
from harnesslab.pages.access import asks_for_part, needs, user_of
from harnesslab.pages.render import render
from harnesslab.queries.reruns.listing import rerun_view, reruns_of
from harnesslab.queries.rollouts.accounts import source_account
from harnesslab.queries.rollouts.annotations import notes_of, views_of
from harnesslab.queries.rollouts.counts import counting
from harnesslab.queries.rollouts.event_content import part
from harnesslab.queries.rollouts.events import event_detail, event_window, events_after, first_event_of_step
from harnesslab.queries.rollouts.facets import FACETS, facet
from harnesslab.queries.rollouts.filters import SORTS, RolloutFilter
from harnesslab.queries.rollouts.listing import facts_of, get_rollout, group_page, rollout_page, row_of, siblings
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

SEARCHED = 12
"""With more values than these, a filter's values can be searched."""


def rollouts(request: HttpRequest) -> HttpResponse:
    """The list, flat or by case; `after` pages on and answers with the further rows alone."""
    chosen = RolloutFilter.of(request.GET)
    after = request.GET.get("after", "")
    context = {
        "filter": chosen,
        "query": chosen.url(),
        "chips": [(name, value, *_chip(name, value), chosen.url(**{name: ""})) for name, value in chosen.active],
        "sorts": list(SORTS),
    }
    if chosen.by == "case":
        context["page"] = group_page(chosen, after)
        rows = "rollouts/_groups.html"
    else:
        context["page"] = rollout_page(chosen, after)
        rows = "rollouts/_rows.html"
    if after and asks_for_part(request):
        return render(request, rows, context)
    context |= {"rows": rows, "facets": [*FACETS, *RolloutFilter.choices()], "views": views_of(request.user.pk or 0)}
    return render(request, "rollouts/list.html", context)


def filter_values(request: HttpRequest) -> HttpResponse:
    """The values of one filter under the others, as links."""
    chosen = RolloutFilter.of(request.GET)
    name = request.GET.get("facet", "")
    find = request.GET.get("find", "")
    values = [(value, count, chosen.url(**{name: value})) for value, count in facet(chosen, name, find)]
    context = {"name": name, "values": values, "query": chosen.url(), "searched": bool(find) or len(values) > SEARCHED}
    return render(request, "rollouts/_facet.html", context)


def rollout(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """One rollout: its header, the step list, and the selected event."""
    row = get_rollout(rollout_id)
    reader = StoredTraceReader(row)
    index = _selected(request, reader) if row.events else 0
    window = event_window(reader, max(0, index - 60))
    return render(
        request,
        "rollouts/rollout.html",
        {
            "rollout": row_of(row),
            "budgets": row.budgets,
            "counting": counting(row),
            "facts": facts_of(row),
            "account": source_account(reader),
            "source": row.source,
            "completeness": reader.manifest.completeness,
            "window": window,
            "seen": row.events if window.after is None else None,
            "detail": event_detail(reader, index) if row.events else None,
            "siblings": siblings(row),
            "notes": notes_of(row.pk),
            "reruns": reruns_of(row.pk),
            "made_by": rerun_view(row.rerun_id) if row.rerun_id is not None else None,
        },
    )


def rollout_running(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """How far a rollout is that runs, with the events after the first `seen`, where the list shows its end."""
    row = get_rollout(rollout_id)
    context: dict[str, object] = {"rollout": row_of(row)}
    if "seen" in request.GET:
        seen = _number(request, "seen")
        context |= {"seen": row.events, "new": events_after(StoredTraceReader(row), seen)}
    return render(request, "rollouts/_running.html", context)


def rollout_events(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """A further window of the step list."""
    reader = StoredTraceReader(get_rollout(rollout_id))
    until = _number(request, "until") if "until" in request.GET else None
    window = event_window(reader, _number(request, "from"), until=until)
    return render(request, "rollouts/_events.html", {"rollout": reader.rollout, "window": window})


def rollout_event(request: HttpRequest, rollout_id: int, index: int) -> HttpResponse:
    """One event in full."""
    reader = StoredTraceReader(get_rollout(rollout_id))
    context = {"rollout": reader.rollout, "detail": event_detail(reader, index), "notes": notes_of(rollout_id)}
    return render(request, "rollouts/_event.html", context)


def rollout_part(request: HttpRequest, rollout_id: int, index: int) -> HttpResponse:
    """One payload whole, as text."""
    reader = StoredTraceReader(get_rollout(rollout_id))
    text = part(reader, index, request.GET.get("name", ""))
    return HttpResponse(text.encode("utf-8", "backslashreplace"), content_type="text/plain; charset=utf-8")


@require_POST
@needs("operator")
def note(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """Add a note to a rollout or one of its steps."""
    step = natural(request.POST.get("step", ""))
    add_note(user_of(request), rollout_id, request.POST.get("text", ""), step)
    back = reverse("rollout", args=[rollout_id])
    return redirect(back if step is None else f"{back}?step={step + 1}")


@require_POST
@needs("operator")
def move(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """Move a rollout to another project, with all that was read from its file where that is wished."""
    wanted = of_same_file(rollout_id) if request.POST.get("file") else [rollout_id]
    name = request.POST.get("project", "")
    moved = move_rollouts(wanted, name, user_of(request))
    messages.success(request, f"{len(moved)} rollout{'s' * (len(moved) != 1)} moved to {name.strip()[:200]}.")
    return redirect("rollout", rollout_id)


@require_POST
@needs("admin")
def delete(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """Delete a whole rollout: one audited action."""
    delete_rollout(user_of(request), rollout_id, request.POST.get("reason", ""))
    messages.success(request, f"Rollout {rollout_id} was deleted; the deletion is in the audit log.")
    return redirect("rollouts")


@require_POST
@needs("viewer")
def save(request: HttpRequest) -> HttpResponse:
    """Keep the list's query under a name, or forget it where the query is empty."""
    query = RolloutFilter.of(dict(_pairs(request.POST.get("query", "")))).url()
    save_view(user_of(request), request.POST.get("name", ""), query)
    return redirect(f"{reverse('rollouts')}?{query}")


def _chip(name: str, value: str) -> tuple[str, str]:
    """Return a filter's name and value as words."""
    if name == "ids":
        return "among", f"{value.count('.') + 1} rollouts"
    text, _, count = value.partition("@")
    number = natural(text)
    if name != "prefix" or number is None:
        return name, value
    try:
        row = get_rollout(number)
    except NotFound:
        return f"same first {count} events as", f"rollout {number}, which is gone"
    return f"same first {count} events as", f"{row.case.name} #{row.trial + 1}"


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query)


def _selected(request: HttpRequest, reader: StoredTraceReader) -> int:
    """Return the event that the URL selects: `event` counts from 0, `step` from 1."""
    if (event := natural(request.GET.get("event", ""))) is not None:
        return min(event, reader.rollout.events - 1)
    step = _number(request, "step")
    if step:
        return first_event_of_step(reader, step - 1)
    return reader.first_of("model_call") or 0


def _number(request: HttpRequest, name: str) -> int:
    value = request.GET.get(name, "")
    if not value:
        return 0
    number = natural(value)
    if number is None:
        raise InvalidValue(f"{value[:40]!r} is no number", where=name)
    return number
