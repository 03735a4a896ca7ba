"""Manifests: every condition with where it came from, gaps shown as gaps, compared with any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from django.http import HttpRequest, HttpResponse

from harnesslab.core.conditions.fields import Field
from harnesslab.core.conditions.manifest import Condition, ConditionPair, Difference, Known, Manifest, compare
from harnesslab.pages.render import render
from harnesslab.queries.rollouts.manifests import find_manifest, load_manifest, manifest_bytes, users_of

Row: TypeAlias = tuple[Field, Condition, bool, ConditionPair | None]
"""A field, its condition, whether that is known, and how it compares."""


def manifest(request: HttpRequest, digest: str) -> HttpResponse:
    """One manifest, or two side by side with `?with=`."""
    digest = find_manifest(digest)
    document = load_manifest(digest)
    other = request.GET.get("with", "").strip()
    pairs: dict[str, ConditionPair] = {}
    if other:
        other = find_manifest(other)
        pairs = {pair.field.name: pair for pair in compare(document, load_manifest(other))}
    sections = _sections(document, pairs)
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
            "identity_gaps": sum(field.name in document.schema.identity.names for field, _ in document.unknowns()),
            "users": users_of(digest),
            "other": other,
            "different": sum(pair.difference is Difference.DIFFERENT for pair in pairs.values()),
            "not_shown": sum(pair.difference is Difference.NOT_SHOWN for pair in pairs.values()),
        },
    )


def _sections(document: Manifest, pairs: Mapping[str, ConditionPair]) -> list[tuple[str, list[Row]]]:
    """Return the conditions by section: those of both documents where two are compared."""
    rows: dict[str, list[Row]] = {}
    for field in [pair.field for pair in pairs.values()] or document.schema.fields:
        condition = document[field.name]
        row = (field, condition, isinstance(condition, Known), pairs.get(field.name))
        rows.setdefault(field.section, []).append(row)
    return list(rows.items())


def manifest_json(request: HttpRequest, digest: str) -> HttpResponse:
    """The canonical bytes, whose SHA-256 is the digest."""
    digest = find_manifest(digest)
    answer = HttpResponse(manifest_bytes(digest), content_type="application/json")
    if "download" in request.GET:
        answer["Content-Disposition"] = 'attachment; filename="manifest.json"'
    return answer
