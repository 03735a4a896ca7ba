"""Bundles to download."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.actions.instance_key import instance_signer
from harnesslab.core.errors import InvalidValue
from harnesslab.queries.bundles import bundle_of


def bundle(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """One rollout as a bundle; `?with=ID` adds the comparison with another, as often as it is given."""
    others = request.GET.getlist("with")
    if not all(other.isdigit() and len(other) < 19 for other in others):
        raise InvalidValue("no rollout's number", where="with")
    data = bundle_of(rollout_id, instance_signer(), [int(other) for other in others])
    answer = HttpResponse(data, content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="rollout-{rollout_id}.zip"'
    return answer
