"""Asking for a training."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from harnesslab.core.deciding.promotion import DEFAULT
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.requests.measuring import MeasuringRequest, Named
from harnesslab.requests.refusals import refused
from harnesslab.requests.values import Command, Flag, Name, decimal, text, whole

MOST_ITERATIONS = 1000
LONGEST_TIMEOUT = 7 * 24 * 3600.0


class TrainingRequest(MeasuringRequest):
    """A loop of iterations; either a folder of patches or a command proposes changes."""

    noun: ClassVar[str] = "training"
    epochs: Annotated[int, whole(1, MOST_ITERATIONS, "{} iterations")] = Field(description="Most iterations.")
    patches: Annotated[str, text()] = Field(default="", description="A folder of patch files, taken in order.")
    command: Command = Field(default=(), description="A program that changes a worktree; it runs as the worker does.")
    name: Name = Field(default="", description="How the proposer is shown, such as its model.")
    effort: Name = Field(default="", description="How hard it thinks; shown beside its name.")
    timeout: Annotated[float, decimal(0, LONGEST_TIMEOUT, "{} seconds", above=True)] = Field(
        default=1800.0, description="Seconds that a proposal may take."
    )
    criterion: Named = Field(default=DEFAULT, description="What a candidate is judged by.")
    certify: Flag = Field(default=True, description="Leave out cases whose environment doesn't repeat.")
    remeasure: Flag = Field(default=False, description="Measure a promoted candidate anew before it is a baseline.")
    unchanged: Flag = Field(
        default=False, description="Measure the first baseline twice, to see what flips by nothing."
    )

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if bool(self.patches) == bool(self.command):
            raise refused("either a folder of patches or a command proposes changes", field="patches")

    def to_plan(self) -> TrainingPlan:
        """Return what is asked of the training."""
        proposer = Proposer(
            kind=ProposerKind.PATCHES if self.patches else ProposerKind.COMMAND,
            folder=self.patches,
            command=self.command,
            timeout=self.timeout,
            name=self.name,
            effort=self.effort,
        )
        return TrainingPlan(
            measure=self.to_measuring_plan(),
            proposer=proposer,
            epochs=self.epochs,
            criterion=self.criterion,
            certify=self.certify,
            remeasure=self.remeasure,
            unchanged=self.unchanged,
        )
