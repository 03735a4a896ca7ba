"""Experiments as values: one measured pass of one harness revision over a panel, and what its source states of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.documents import read
from harnesslab.core.running.recipe import HarnessKind, HarnessSource, SideEffects


class ExperimentKind(StrEnum):
    """What a pass was measured for; a promoted candidate is the baseline of the next."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    EVAL = "eval"


class Verdict(StrEnum):
    """How a candidate was decided."""

    PROMOTED = "promoted"
    REJECTED = "rejected"
    INVALID_INFRA = "invalid_infra"


class State(StrEnum):
    """Where an experiment is."""

    IMPORTED = "imported"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


ENGINE_SETTINGS: Mapping[str, JSON] = {"temperature": 0.0}


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a project measures: the git repository of its harness, and how the harness is started."""

    harness: HarnessSource
    """Its `revision` is not used: each experiment names its own."""
    branch: str = "main"
    """The branch that promotions fast-forward."""
    surface: tuple[str, ...] = ("*.py",)
    """Patterns of the files that a candidate may change."""
    tools: Mapping[str, SideEffects] = msgspec.field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return the binding as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> Binding:
        """Read a binding that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        return read(document, cls, "binding")

    def at(self, commit: str) -> HarnessSource:
        """Return the harness at a commit."""
        return msgspec.structs.replace(self.harness, revision=commit)

    @property
    def controlled(self) -> bool:
        """Whether every boundary of the harness is controlled."""
        return self.harness.kind is HarnessKind.LOOP


class MeasuringPlan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is asked of one experiment, beside its revision and panel."""

    engine: str
    trials: int = 1
    root_seed: str = "12345"
    settings: Mapping[str, JSON] = msgspec.field(default_factory=lambda: dict(ENGINE_SETTINGS))
    cases: tuple[str, ...] | None = None
    """A subset of the panel's cases; None for all of them."""
    pins: tuple[str, ...] | None = None

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> MeasuringPlan:
        """Read a plan that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        return read(document, cls, "plan")


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """What a source states of an experiment as a whole; importers yield it beside the rollouts."""

    external_id: str
    """Its name in the source; unique in the project."""
    project: str = "imported"
    panel: str = ""
    kind: ExperimentKind | None = None
    revision: str = ""
    parent_revision: str = ""
    baseline: str = ""
    """External id of the baseline it was measured against."""
    verdict: Verdict | None = None
    reason: str = ""
    mechanism: str = ""
    """The change in one line, where the source says it."""
    decision: Mapping[str, JSON] = field(default_factory=dict)
    """The source's decision, verbatim."""
    certification: Mapping[str, JSON] = field(default_factory=dict)
    """By case, `{"verdict": deterministic | forked | no_chain, …}` as the source says it."""
    identity: str = ""
    """Digest of the measurement identity, where the source states one."""
    solved: int | None = None
    """As stated where there are no rollouts to count; else None."""
    total: int | None = None
    metrics: Mapping[str, JSON] = field(default_factory=dict)
    memo: str = ""
    """The learning memo beside it, whole."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """All that the source states of it, verbatim."""
