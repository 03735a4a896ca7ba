"""What a worker needs to run a case: the instruction, the files at the start, the budgets, and the verifier.

A definition is content-addressed: two rollouts of one digest had the same task.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harnesslab.core.canonical import JSON, Digest, digest
from harnesslab.core.documents import read
from harnesslab.core.errors import InvalidValue

SCHEMA = "harnesslab.case/1"


class Budgets(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Declared limits of an episode."""

    steps: int = 12
    wall: float = 600.0
    """Seconds of the whole episode."""
    command: float = 20.0
    """Seconds of one command."""
    verify: float = 60.0
    """Seconds of the verifier."""
    output: int = 256
    """Output tokens of one call."""
    context: int = 8192
    """Tokens of the model's context."""


class Verifier(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the work folder is judged: commands by test name, each passed where it exits with 0."""

    tests: Mapping[str, str] = msgspec.field(default_factory=dict)
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Files put beside the work, into `.verifier/`, only when judging begins."""


class SimulatedUser(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A simulated user: a system prompt for a model call of its own, or fixed replies in order."""

    persona: str = ""
    replies: tuple[str, ...] = ()


class CaseDefinition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One runnable case; file contents are text."""

    name: str
    instruction: str
    files: Mapping[str, str] = msgspec.field(default_factory=dict)
    setup: tuple[str, ...] = ()
    """Commands run in the work folder before the agent begins."""
    verifier: Verifier = Verifier()
    budgets: Budgets = Budgets()
    user: SimulatedUser | None = None
    image: str = ""
    """Container image by digest; empty for the machine's own read-only system."""
    tags: tuple[str, ...] = ()

    def to_json(self) -> JSON:
        """Return the definition as a document: budgets and verifiers that say nothing are left out, so that equal
        definitions have one digest."""
        body = msgspec.to_builtins(self)  # which leaves out only the very object that is the default
        said = {key: value for key, value in body.items() if value or key not in ("budgets", "verifier")}
        return {"schema": SCHEMA, **said}

    @property
    def digest(self) -> Digest:
        """SHA-256 of the definition's canonical bytes."""
        return digest(self.to_json())

    @classmethod
    def from_json(cls, document: JSON) -> CaseDefinition:
        """Read a definition that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
            raise InvalidValue(f"not a case definition: no schema {SCHEMA}")
        body = {key: value for key, value in document.items() if key != "schema"}
        return read(body, cls, "case")


def content(text: str) -> bytes:
    """Return the bytes of a case's file; half characters are written as they are."""
    return text.encode("utf-8", "surrogatepass")
