"""The learning memo of a project: its versions, what changed between two, and who proposed at what cost."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.core.natural import natural
from harnesslab.pages.markdown import rendered
from harnesslab.pages.render import render
from harnesslab.queries.stories.memos import memo_view


def memo(request: HttpRequest, project_id: int) -> HttpResponse:
    """One version, the newest by default; `v` names another, `from` what it is compared with."""
    chosen, before = (natural(request.GET.get(name, "")) for name in ("v", "from"))
    view = memo_view(project_id, chosen, before)
    context = {"view": view, "text": rendered(view.text), "chosen": view.version, "before": view.before}
    return render(request, "stories/memo.html", context)
