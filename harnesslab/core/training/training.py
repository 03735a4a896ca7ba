"""Training as values: what is asked of the loop, and the states of it and its iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.documents import read
from harnesslab.core.measuring.experiments import MeasuringPlan

SKIPS = 2
"""So many iterations in a row without a measured candidate stop a training."""


class TrainingState(StrEnum):
    """Where a training is."""

    RUNNING = "running"
    STOPPED = "stopped"
    """On request, or since iterations were skipped; it can go on."""
    DONE = "done"
    FAILED = "failed"


class IterationState(StrEnum):
    """Where an iteration is; each state names what it waits for."""

    BASELINE = "baseline"
    """The baseline is being measured."""
    CERTIFYING = "certifying"
    PROPOSING = "proposing"
    MEASURING = "measuring"
    """The candidate is being measured."""
    PROMOTED = "promoted"
    REJECTED = "rejected"
    INVALID = "invalid"
    """The candidate could not be judged."""
    SKIPPED = "skipped"
    """No candidate was measured."""


OPEN = frozenset(
    {IterationState.BASELINE, IterationState.CERTIFYING, IterationState.PROPOSING, IterationState.MEASURING}
)


class ProposerKind(StrEnum):
    """Who proposes changes."""

    PATCHES = "patches"
    """A folder of patch files, taken in order of their names."""
    COMMAND = "command"
    """Any program, run in a worktree with the memo and the evidence as files."""


class Proposer(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who proposes one bounded change an iteration."""

    kind: ProposerKind
    folder: str = ""
    """Of a patch queue: where its files are."""
    command: tuple[str, ...] = ()
    timeout: float = 1800.0
    """Seconds."""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    name: str = ""
    """How it is shown, such as the model behind the command."""
    effort: str = ""


class TrainingPlan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is asked of a training."""

    measure: MeasuringPlan
    proposer: Proposer
    epochs: int
    """Most iterations."""
    criterion: str = "strict_pareto"
    certify: bool = True
    remeasure: bool = False
    """Whether a promoted candidate is measured anew, over the whole panel, before it is a baseline."""
    unchanged: bool = False
    """Whether an A/A run of the first baseline is made: measured again unchanged."""

    def measure_only(self, cases: Sequence[str]) -> MeasuringPlan:
        """Return how a subset of the panel is measured."""
        return msgspec.structs.replace(self.measure, cases=tuple(cases))

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        built: JSON = msgspec.to_builtins(self)
        return built

    @classmethod
    def from_json(cls, document: JSON) -> TrainingPlan:
        """Read a plan that `to_json` wrote; raises `InvalidValue` naming what is wrong."""
        return read(document, cls, "training")
