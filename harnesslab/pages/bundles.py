"""Bundles to download."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.actions.instance_key import instance_signer
from harnesslab.queries.bundles import bundle_of


def bundle(request: HttpRequest, rollout_id: int) -> HttpResponse:
    """One rollout as a bundle."""
    answer = HttpResponse(bundle_of(rollout_id, instance_signer()), content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="rollout-{rollout_id}.zip"'
    return answer
