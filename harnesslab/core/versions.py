"""The versions of a document that is sealed or exported: each is read by the rules of its own number, for good."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Versions(Generic[R]):
    """The rules of a document's versions by number; its schema is written `NAME/NUMBER`."""

    name: str
    """Such as `harnesslab.manifest`."""
    rules: Mapping[int, R]

    @property
    def newest(self) -> int:
        """The number that new documents are written with."""
        return max(self.rules)

    @property
    def current(self) -> R:
        """The rules of the newest version."""
        return self.rules[self.newest]

    def schema(self, number: int) -> str:
        """Return the schema that a document of a number states."""
        return f"{self.name}/{number}"

    def of(self, schema: JSON) -> R:
        """Return the rules of the schema that a document states; raises `InvalidValue` for one that isn't known."""
        number = self._number(schema)
        if number is None:
            raise InvalidValue(f"no schema {self.schema(self.newest)}")
        if number not in self.rules:
            raise InvalidValue(
                f"written as {self.schema(number)}, which this version doesn't know",
                hint=f"it reads up to {self.schema(self.newest)}; a newer HarnessLab reads it",
            )
        return self.rules[number]

    def _number(self, schema: JSON) -> int | None:
        found = re.fullmatch(re.escape(self.name) + r"/([1-9][0-9]{0,5})", schema) if isinstance(schema, str) else None
        return int(found[1]) if found is not None else None
