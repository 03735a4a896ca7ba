"""What experiments and trainings have in common: a panel, an engine, and how each case is measured."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harnesslab.core.measuring.experiments import MeasuringPlan
from harnesslab.core.seeds import seed_of
from harnesslab.requests.refusals import refused
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.values import decimal, text, texts, whole, written


def _root_seed(text: str) -> None:
    if seed_of(text) is None:
        raise refused(f"no seed: {written(text)}", "a whole number below 2^63")


Named = Annotated[str, text(strip=False)]
"""The name of something that is stored."""


class MeasuringRequest(RequestSchema):
    """Everything is named here; whether there is such a thing, actions find out."""

    project: Named = Field(description="A project that is bound to a harness.")
    panel: Named = Field(description="A panel of the project, its newest revision; NAME@DIGEST for another one.")
    engine: Named = Field(description="A registered engine, by name.")
    trials: Annotated[int, whole(1, 100, "{} trials")] = Field(default=1, description="How often each case is run.")
    seed: Annotated[str, text(_root_seed)] = Field(default="12345", description="The root of all seeds.")
    temperature: Annotated[float, decimal(0, 10, "no temperature: {}")] | None = Field(
        default=0.0, description="Of the model; null, typed as an empty text, for the engine's own."
    )
    cases: Annotated[tuple[str, ...], texts(none="no case was chosen")] | None = Field(
        default=None, description="Only these cases of the panel."
    )

    def to_measuring_plan(self) -> MeasuringPlan:
        """Return how each case is measured."""
        settings = {} if self.temperature is None else {"temperature": self.temperature}
        return MeasuringPlan(self.engine, self.trials, self.seed, settings, self.cases)
