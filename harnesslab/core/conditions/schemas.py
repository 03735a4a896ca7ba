"""The versions of the manifest and of the identities that are digested from it.

A version's fields are frozen once a manifest was stored under it: one field more is another number, and what was
stored before keeps the digests it has. Titles and help texts are no part of a version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harnesslab.core.conditions.fields import FIELDS, Field
from harnesslab.core.versions import Versions

PANEL = frozenset({"panel.name", "panel.revision"})
"""A candidate may be measured on a subset of the panel; each case is compared by its own digest."""
CASE = "panel.case_digest"


@dataclass(frozen=True, slots=True)
class IdentitySchema:
    """The conditions that an identity document is digested from, and the schema that it states."""

    schema: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManifestSchema:
    """The fields of one version of the manifest, and the identities of what was stored under it.

    A version that changes no identity field names the identities of the one before, so that digests stay equal.
    """

    number: int
    fields: tuple[Field, ...]
    identity: IdentitySchema
    """Of one rollout."""
    experiment_identity: IdentitySchema
    """Of an experiment, over all its cases."""
    by_name: Mapping[str, Field] = field(init=False, repr=False, compare=False)
    sections: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.fields})
        object.__setattr__(self, "sections", tuple(dict.fromkeys(each.section for each in self.fields)))

    @property
    def name(self) -> str:
        """The schema that documents of this version state."""
        return MANIFESTS.schema(self.number)


def of_rollout(number: int, fields: Iterable[Field]) -> IdentitySchema:
    """Return an identity over the fields that are marked so."""
    return IdentitySchema(f"harnesslab.identity/{number}", tuple(each.name for each in fields if each.identity))


def of_experiment(number: int, fields: Iterable[Field]) -> IdentitySchema:
    """Return an experiment's identity: as a rollout's, with the case's content in place of the panel's name."""
    names = (each.name for each in fields if each.name == CASE or (each.identity and each.name not in PANEL))
    return IdentitySchema(f"harnesslab.experiment-identity/{number}", tuple(names))


MANIFESTS: Versions[ManifestSchema] = Versions(
    "harnesslab.manifest", {1: ManifestSchema(1, FIELDS, of_rollout(1, FIELDS), of_experiment(1, FIELDS))}
)


def fields_of(*schemas: ManifestSchema) -> tuple[Field, ...]:
    """Return the fields of some versions together, in the order of the newest."""
    newest_first = sorted(schemas, key=lambda each: -each.number)
    return tuple({name: each for one in newest_first for name, each in one.by_name.items()}.values())
