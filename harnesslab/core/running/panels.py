"""Panels: runnable cases in order, revisioned by digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, Digest, digest
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.cases import CaseDefinition

SCHEMA = "harnesslab.panel/1"
MOST_CASES = 5000
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class PanelDefinition:
    """What a panel holds at one revision."""

    cases: Sequence[CaseDefinition]

    def __post_init__(self) -> None:
        names = Counter(case.name for case in self.cases)
        odd = next((name for name in names if not name.isprintable() or not 0 < len(name) <= LONGEST_NAME), None)
        if odd is not None:
            hint = f"from 1 to {LONGEST_NAME} printable characters"
            raise InvalidValue(f"no name of a case: {odd[:80]!r}", where="panel", hint=hint)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise InvalidValue(f"two cases are named {twice!r}", where="panel")
        if not 1 <= len(names) <= MOST_CASES:
            raise InvalidValue(f"{len(names)} cases", where="panel", hint=f"a panel has from 1 to {MOST_CASES}")

    def to_json(self) -> JSON:
        """Return the definition as a document."""
        return {"schema": SCHEMA, "cases": [case.to_json() for case in self.cases]}

    @property
    def digest(self) -> Digest:
        """Digest over the cases in order: a changed word of one case is another revision."""
        return digest({"schema": SCHEMA, "cases": [[case.name, case.digest] for case in self.cases]})

    @classmethod
    def from_json(cls, document: JSON) -> PanelDefinition:
        """Read a definition that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        match document:
            case {"schema": str(schema), "cases": list(cases)} if schema == SCHEMA:
                return cls(tuple(CaseDefinition.from_json(case) for case in cases))
        raise InvalidValue(f"not a panel: no schema {SCHEMA}")

    def chosen(self, names: Collection[str] | None) -> list[CaseDefinition]:
        """Return the cases of some names in the panel's order, all for None; raises `InvalidValue` for others."""
        if names is None:
            return list(self.cases)
        if unknown := sorted(set(names) - {case.name for case in self.cases}):
            raise InvalidValue(f"the panel has no case {unknown[0]!r}", where="cases")
        return [case for case in self.cases if case.name in names]
