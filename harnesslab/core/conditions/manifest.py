"""The manifest: a content-addressed document that names every condition of a rollout.

A condition is either `Known`, with where the value came from, or `Unknown`, with the reason. A manifest's schema
holds the explicit list of its conditions, and which of them make up the measurement identity; a stored one keeps
the schema that it was written under. Two unknowns are never equal: they are *not shown equal*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from harnesslab.core.canonical import JSON, Digest, canonical_bytes, digest
from harnesslab.core.conditions.fields import Field
from harnesslab.core.conditions.schemas import MANIFESTS, ManifestSchema, fields_of
from harnesslab.core.errors import InvalidValue


class Provenance(StrEnum):
    """Where a value came from."""

    SERVER = "server-reported"
    CONFIGURED = "configured"
    PROBED = "probed"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Known:
    """A condition's value and where it came from."""

    value: JSON
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that nobody recorded, and why."""

    reason: str


Condition: TypeAlias = Known | Unknown


@dataclass(frozen=True, slots=True)
class Manifest:
    """The conditions of one rollout by dotted name; every field of its schema has one."""

    conditions: Mapping[str, Condition]
    schema: ManifestSchema = field(default_factory=lambda: MANIFESTS.current)

    @classmethod
    def of(
        cls,
        values: Mapping[str, JSON],
        *,
        unknown: str,
        provenance: Provenance = Provenance.IMPORTED,
        reasons: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Make a manifest from what is known; all else is unknown, with `reasons[name]` or else `unknown`.

        A value of None counts as not stated. Raises `InvalidValue` for a name that is not a field.
        """
        known = {name: Known(value, provenance) for name, value in values.items() if value is not None}
        return cls.from_conditions(known, unknown=unknown, reasons=reasons)

    @classmethod
    def from_conditions(
        cls,
        known: Mapping[str, Condition],
        *,
        unknown: str,
        reasons: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Make a manifest from conditions that may differ in provenance; see `of`."""
        why, schema = reasons or {}, MANIFESTS.current
        for name in (*known, *why):
            if name not in schema.by_name:
                raise InvalidValue("not a manifest field", where=name)
        return cls({name: known.get(name, Unknown(why.get(name, unknown))) for name in schema.by_name}, schema)

    def __getitem__(self, name: str) -> Condition:
        """Return a condition; one that only other versions of the manifest have is unknown."""
        if name not in self.schema.by_name and any(name in each.by_name for each in MANIFESTS.rules.values()):
            return Unknown(f"not stated by manifest/{self.schema.number}")
        return self.conditions[name]

    def value(self, name: str) -> JSON:
        """Return a condition's value, or None where it is unknown."""
        condition = self[name]
        return condition.value if isinstance(condition, Known) else None

    def to_json(self) -> dict[str, JSON]:
        """Return the document whose canonical bytes have the manifest's digest."""
        sections: dict[str, dict[str, JSON]] = {section: {} for section in self.schema.sections}
        for each in self.schema.fields:
            sections[each.section][each.key] = _condition_json(self.conditions[each.name])
        return {"schema": self.schema.name, **sections}

    @classmethod
    def from_json(cls, document: JSON) -> Manifest:
        """Read a document that `to_json` wrote by the version that it states.

        Raises `InvalidValue` naming what is wrong.
        """
        if not isinstance(document, Mapping):
            raise InvalidValue("not a manifest: no JSON object")
        schema = _schema_of(document)
        _refuse_unknown(document, schema)
        known: dict[str, Condition] = {}
        for each in schema.fields:
            section = document.get(each.section)
            raw = section.get(each.key) if isinstance(section, Mapping) else None
            known[each.name] = _condition_from(raw, each.name)
        return cls(known, schema)

    def canonical(self) -> bytes:
        """Return the canonical bytes, as exported."""
        return canonical_bytes(self.to_json())

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical bytes."""
        return digest(self.to_json())

    @property
    def completeness(self) -> tuple[int, int]:
        """(known conditions, all conditions)."""
        return sum(isinstance(item, Known) for item in self.conditions.values()), len(self.schema.fields)

    @property
    def identity(self) -> Digest:
        """Digest of the measurement identity; equal digests with unknowns inside don't show equality."""
        identity = self.schema.identity
        parts = {name: _condition_json(self.conditions[name]) for name in identity.names}
        return digest({"schema": identity.schema, **parts})

    def unknowns(self) -> Iterator[tuple[Field, Unknown]]:
        """Yield the gaps in field order."""
        for each in self.schema.fields:
            condition = self.conditions[each.name]
            if isinstance(condition, Unknown):
                yield each, condition


class Difference(StrEnum):
    """How one condition compares between two manifests."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_SHOWN = "not shown equal"
    """At least one side is unknown."""


@dataclass(frozen=True, slots=True)
class ConditionPair:
    """One condition of two manifests side by side."""

    field: Field
    a: Condition
    b: Condition
    difference: Difference


def compare(a: Manifest, b: Manifest) -> list[ConditionPair]:
    """Compare two manifests condition by condition, in field order; what one's version lacks is unknown there."""
    return [
        ConditionPair(each, a[each.name], b[each.name], _difference(a[each.name], b[each.name]))
        for each in fields_of(a.schema, b.schema)
    ]


def declared_differences(a: Manifest, b: Manifest) -> list[ConditionPair]:
    """Return the conditions known on both sides and different."""
    return [pair for pair in compare(a, b) if pair.difference is Difference.DIFFERENT]


def _difference(a: Condition, b: Condition) -> Difference:
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return Difference.NOT_SHOWN
    return Difference.EQUAL if canonical_bytes(a.value) == canonical_bytes(b.value) else Difference.DIFFERENT


def _condition_json(condition: Condition) -> dict[str, JSON]:
    match condition:
        case Known(value, provenance):
            return {"value": value, "from": provenance.value}
        case Unknown(reason):
            return {"unknown": reason}


def _schema_of(document: Mapping[str, JSON]) -> ManifestSchema:
    """Return the version that a document states."""
    try:
        return MANIFESTS.of(document.get("schema"))
    except InvalidValue as error:
        raise InvalidValue(f"not a manifest that can be read: {error.what}", hint=error.hint) from None


def _refuse_unknown(document: Mapping[str, JSON], schema: ManifestSchema) -> None:
    """Refuse what would be lost: a manifest's digest covers all of it."""
    for section, content in document.items():
        if section == "schema":
            continue
        if section not in schema.sections or not isinstance(content, Mapping):
            raise InvalidValue("not a section of a manifest", where=section)
        for key in content:
            if f"{section}.{key}" not in schema.by_name:
                raise InvalidValue("not a manifest field", where=f"{section}.{key}")


def _condition_from(raw: JSON, name: str) -> Condition:
    match raw:
        case {"value": value, "from": str(provenance), **rest} if not rest:
            try:
                return Known(value, Provenance(provenance))
            except ValueError:
                raise InvalidValue(f"unknown provenance {provenance!r}", where=name) from None
        case {"unknown": str(reason), **rest} if not rest:
            return Unknown(reason)
        case None:
            return Unknown("not stated by the manifest")
    raise InvalidValue("neither a value with its provenance nor an unknown with its reason", where=name)
