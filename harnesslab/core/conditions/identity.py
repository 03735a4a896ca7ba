"""The measurement identity of two experiments, compared case by case: what must be equal for a fair comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, Digest, canonical_bytes, digest
from harnesslab.core.conditions.fields import Field
from harnesslab.core.conditions.manifest import Difference, Known, Manifest, Unknown, compare


@dataclass(frozen=True, slots=True)
class IdentityDifference:
    """One condition that is not the same on both sides."""

    field: Field
    difference: Difference
    a: JSON
    b: JSON
    cases: tuple[str, ...]
    """Where, in the order given."""


def identity_differences(pairs: Iterable[tuple[str, Manifest, Manifest]]) -> list[IdentityDifference]:
    """Compare (case, manifest, manifest) pairs over the measurement identity; equal conditions are left out.

    Conditions that are unknown on a side are *not shown equal*; different ones come first.
    """
    found: dict[tuple[str, Difference, bytes, bytes], tuple[IdentityDifference, list[str]]] = {}
    for case, a, b in pairs:
        names = {*a.schema.experiment_identity.names, *b.schema.experiment_identity.names}
        for pair in compare(a, b):
            if pair.field.name not in names or pair.difference is Difference.EQUAL:
                continue
            left, right = _value(pair.a), _value(pair.b)
            key = (pair.field.name, pair.difference, canonical_bytes(left), canonical_bytes(right))
            entry = IdentityDifference(pair.field, pair.difference, left, right, ())
            found.setdefault(key, (entry, []))[1].append(case)
    rows = [
        IdentityDifference(entry.field, entry.difference, entry.a, entry.b, tuple(cases))
        for entry, cases in found.values()
    ]
    return sorted(rows, key=lambda row: row.difference is not Difference.DIFFERENT)


def refused(differences: Iterable[IdentityDifference]) -> list[str]:
    """Name the conditions that differ, so that the two are no comparison; empty where they may be compared."""
    return list(dict.fromkeys(row.field.name for row in differences if row.difference is Difference.DIFFERENT))


def identity_digest(manifests: Mapping[str, Manifest]) -> Digest:
    """Return a digest of an experiment's measurement identity: of what all its cases share.

    Equal digests with unknowns inside don't show equality. What differs from case to case stays with the cases.
    Where the cases have manifests of several versions, the oldest one's identity is digested, which all of them state.
    """
    if not manifests:
        return Digest("")
    oldest = min((each.schema for each in manifests.values()), key=lambda schema: schema.number)
    identity = oldest.experiment_identity
    parts: dict[str, JSON] = {}
    for name in identity.names:
        values = {canonical_bytes(_document(each, name)) for each in manifests.values()}
        if len(values) == 1:
            parts[name] = _document(next(iter(manifests.values())), name)
    return digest({"schema": identity.schema, **parts})


def _document(manifest: Manifest, name: str) -> JSON:
    condition = manifest[name]
    return {"value": condition.value} if isinstance(condition, Known) else {"unknown": condition.reason}


def _value(condition: Known | Unknown) -> JSON:
    return condition.value if isinstance(condition, Known) else {"unknown": condition.reason}
