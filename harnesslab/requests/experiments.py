"""Asking for an experiment."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from harnesslab.core.measuring.experiments import ExperimentKind
from harnesslab.requests.measuring import MeasuringRequest, Named
from harnesslab.requests.refusals import refused
from harnesslab.requests.values import choice, text


class ExperimentRequest(MeasuringRequest):
    """One pass of a harness revision over a panel."""

    noun: ClassVar[str] = "experiment"
    revision: Annotated[str, text()] = Field(description="A commit, tag or branch of its harness.")
    kind: Annotated[
        ExperimentKind | None, choice(ExperimentKind, ExperimentKind, "kind of experiment", optional=True)
    ] = Field(default=None, description="A candidate where it has a baseline, else an evaluation.")
    baseline: Named = Field(default="", description="The experiment that it is judged against.")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.kind is ExperimentKind.CANDIDATE and not self.baseline:
            raise refused("a candidate needs a baseline that it is judged against", field="baseline")

    @property
    def purpose(self) -> ExperimentKind:
        """Its kind, where none is named by whether it has a baseline."""
        return self.kind or (ExperimentKind.CANDIDATE if self.baseline else ExperimentKind.EVAL)
