"""Manifests: every condition with where it came from, gaps shown as gaps, compared with any other."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from harnesslab.core.conditions.fields import FIELDS, SECTIONS
from harnesslab.core.conditions.manifest import Difference, Known, compare
from harnesslab.pages.render import render
from harnesslab.queries.rollouts.manifests import find_manifest, load_manifest, manifest_bytes, users_of


def manifest(request: HttpRequest, digest: str) -> HttpResponse:
    """One manifest, or two side by side with `?with=`."""
    digest = find_manifest(digest)
    document = load_manifest(digest)
    other = request.GET.get("with", "").strip()
    pairs = {}
    if other:
        other = find_manifest(other)
        pairs = {pair.field.name: pair for pair in compare(document, load_manifest(other))}
    sections = [
        (
            section,
            [
                (field, document[field.name], isinstance(document[field.name], Known), pairs.get(field.name))
                for field in FIELDS
                if field.section == section
            ],
        )
        for section in SECTIONS
    ]
    differing = [row for _, rows in sections for row in rows if row[3] and row[3].difference is Difference.DIFFERENT]
    if differing:
        sections = [("different", differing), *sections]
    known, total = document.completeness
    return render(
        request,
        "manifests/manifest.html",
        {
            "digest": digest,
            "identity": document.identity,
            "sections": sections,
            "known": known,
            "total": total,
            "identity_gaps": sum(field.identity for field, _ in document.unknowns()),
            "users": users_of(digest),
            "other": other,
            "different": sum(pair.difference is Difference.DIFFERENT for pair in pairs.values()),
            "not_shown": sum(pair.difference is Difference.NOT_SHOWN for pair in pairs.values()),
        },
    )


def manifest_json(request: HttpRequest, digest: str) -> HttpResponse:
    """The canonical bytes, whose SHA-256 is the digest."""
    digest = find_manifest(digest)
    answer = HttpResponse(manifest_bytes(digest), content_type="application/json")
    if "download" in request.GET:
        answer["Content-Disposition"] = 'attachment; filename="manifest.json"'
    return answer
