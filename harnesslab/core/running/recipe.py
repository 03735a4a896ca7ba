"""What it takes to run a rollout, or to run it again: harness, case, engine, settings, seeds, pins.

A recipe says what was asked for; the manifest says under which conditions it really ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.documents import read
from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.seeds import derive

SAME = "same"
DRAWN = "drawn"
POLICY = "harnesslab.policy/1"
"""The protocol between a loop harness and its worker; see `docs/harnesses.md`."""
_SEED_LIMIT = 2**31
"""Some engines keep 32 bits of a seed, of which one value means random."""


class HarnessKind(StrEnum):
    """How a harness is run."""

    LOOP = "loop"
    """A Python module in a sandbox of its own that asks the worker for everything."""
    COMMAND = "command"
    """Any agent program behind the recording gateway."""


class SideEffects(StrEnum):
    """What a tool touches."""

    NONE = "none"
    READ_ONLY = "read-only"
    SANDBOXED = "sandboxed"
    EXTERNAL = "external"
    """Never executed again by a rerun."""


RUN = "run"
"""The one tool that workers run themselves, in the case's sandbox."""


def side_effects(tools: Mapping[str, SideEffects], name: str) -> SideEffects:
    """Return what a tool touches: as declared, else the sandbox for what workers run there, and anything for others."""
    return tools.get(name, SideEffects.SANDBOXED if name == RUN else SideEffects.EXTERNAL)


class HarnessSource(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a harness's code is, and how it is started."""

    name: str
    repository: str
    """A git repository: a path or an address; empty for a command that is installed."""
    revision: str = ""
    """A commit."""
    kind: HarnessKind = HarnessKind.LOOP
    entry: str = "harness"
    """Of a loop harness: the module to run."""
    command: tuple[str, ...] = ()
    """Of a command harness: the program and its arguments."""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of a command harness: further environment variables; `{base_url}` in values is the gateway's address."""
    readable: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of a command harness: read-only folders it needs, path inside to path on the host."""


class Recipe(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything asked for of one rollout."""

    harness: HarnessSource
    case: CaseDefinition
    engine: str
    """Name of a registered engine."""
    settings: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Settings of every request, unless the harness states others."""
    root_seed: str = "0"
    """Root of its seed streams, in decimal."""
    environment_root: str = ""
    """Root of the sandbox's own stream, where a fork rebuilds what was recorded under another root; else empty."""
    trial: int = 0
    tools: Mapping[str, SideEffects] = msgspec.field(default_factory=dict)
    """Side effects by tool; of what is not named `side_effects` tells."""
    pins: tuple[str, ...] | None = None
    """Pins to hold; None for all that the machine can."""
    repeats: int = 2
    """How often an attempt at the model boundary that infrastructure failed is made again."""
    stream: bool = False

    def seed(self, stream: str, call: int = 0) -> int:
        """Return the seed of one call of a stream, below 2^31."""
        root = self.environment_root if stream == "environment" and self.environment_root else self.root_seed
        return derive(int(root), stream, self.case.name, self.trial, call) % _SEED_LIMIT

    def to_json(self) -> JSON:
        """Return the recipe as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> Recipe:
        """Read a recipe that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        return read(document, cls, "recipe")
