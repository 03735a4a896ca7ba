"""Asking for reruns and regression cases; steps count from 0 here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harnesslab.core.running.predicates import MOST_STEPS, Predicate, What
from harnesslab.core.running.recipe import DRAWN, SAME
from harnesslab.core.running.rerun import MOST_ATTEMPTS, SWITCHED, Mode, OnMiss, RerunPlan, Switch
from harnesslab.core.seeds import seed_of
from harnesslab.requests.refusals import refused
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.values import (
    Flag,
    Name,
    ValueReading,
    choice,
    decimal,
    encodable,
    printable,
    text,
    whole,
    written,
)

ONE_OF_SEEDS = "same, drawn, or a number from 0 to 2^63-1"


def _seed(text: str) -> None:
    if text not in (SAME, DRAWN) and seed_of(text) is None:
        raise refused(f"no seed: {written(text)}" if text else "which seed?", ONE_OF_SEEDS)


def _searchable(text: str) -> None:
    if not encodable(text):
        raise refused("no text with NUL or a lone surrogate can be looked for")


def _case_name(text: str) -> None:
    if not text:
        raise refused("a regression case needs a name")


_SWITCH = choice(Switch, Switch, "switch")


def _switches(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise refused(f"{written(value)} is no object", "boundaries with where their answers come from")
    for name in map(str, value):
        if name not in SWITCHED and not name.startswith("tool:"):
            raise refused(f"no boundary {written(name)}", f"known: {', '.join(SWITCHED)}, tool:NAME")
        printable(name)
    return {str(name): _SWITCH.read(switch) for name, switch in value.items()}


_SWITCHES = ValueReading(_switches, {"type": "object", "additionalProperties": _SWITCH.document})
Step = Annotated[int, whole(0, None, "no step: {}", hint="steps count from 0")]
Attempts = Annotated[int, whole(1, MOST_ATTEMPTS, "{} attempts")]
Seed = Annotated[str, text(_seed)]


class RerunRequest(RequestSchema):
    """A rerun of a rollout."""

    noun: ClassVar[str] = "plan"
    mode: Annotated[Mode, choice(Mode, Mode, "mode")] = Field(default=Mode.LIVE, description="What is executed anew.")
    switches: Annotated[Mapping[str, Switch], _SWITCHES] = Field(
        default={}, description="In mode hybrid: where a boundary's answers come from; the rest is recorded."
    )
    on_miss: Annotated[OnMiss, choice(OnMiss, OnMiss, "way on from a miss")] = Field(
        default=OnMiss.STOP, description="What happens when the record has no answer."
    )
    from_step: Step | None = Field(default=None, description="Fork: the first step that is not served, from 0.")
    attempts: Attempts = Field(default=1, description="How many; each makes a rollout.")
    engine: Name = Field(default="", description="Another registered engine, by name.")
    seed: Seed = Field(default=SAME, description="same as recorded, drawn for each attempt, or a number.")
    temperature: Annotated[float, decimal(0, 10, "no temperature: {}")] | None = Field(
        default=None, description="Another temperature."
    )
    max_tokens: Annotated[int, whole(1, 1_000_000, "no limit: {} tokens")] | None = Field(
        default=None, description="Another limit of tokens a call."
    )
    revision: Name = Field(default="", description="Another harness revision: a commit, tag or branch.")
    self_test: Flag = Field(default=False, description="In mode recorded: serve an altered record; it must diverge.")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        recorded = self.mode is Mode.RECORDED
        if self.switches and self.mode is not Mode.HYBRID:
            raise refused("switches belong to mode hybrid", field="switches")
        if self.from_step and recorded:
            raise refused("a recorded rerun serves every step; forking needs live or hybrid", field="from_step")
        if self.self_test and not recorded:
            raise refused("the self-test is of recorded reruns", field="self_test")
        if recorded and self.attempts != 1:
            raise refused("a recorded rerun is no sample, so that repeating it shows nothing", field="attempts")

    def to_plan(self) -> RerunPlan:
        """Return the plan."""
        return RerunPlan(**dict(self))


class PredicateRequest(BaseModel):
    """What a bad decision looks like; it holds of something, and not of everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    what: Annotated[What, choice(What, What, "condition")]
    tool: Annotated[str, text(_searchable)] = ""
    argument: Annotated[str, text(_searchable)] = ""
    steps: Annotated[int, whole(1, MOST_STEPS - 1, "{} steps")] = 1
    holds: Annotated[str, text(_searchable, strip=False)] = ""

    @model_validator(mode="after")
    def _holds_of_something(self) -> Self:
        if self.what is What.TOOL_CALL and not self.tool:
            raise refused("which tool?", "name the tool that must not be called", field="tool")
        if self.what in (What.ARGUMENT, What.ANSWER) and not self.holds:
            raise refused("which text?", "say what it must hold", field="holds")
        return self

    def to_predicate(self) -> Predicate:
        """Return the predicate."""
        return Predicate(**dict(self))


class RegressionRequest(RequestSchema):
    """A regression case made from a step of a rollout."""

    noun: ClassVar[str] = "regression case"
    name: Annotated[str, text(_case_name)]
    from_step: Step
    predicate: PredicateRequest


class RegressionMeasurementRequest(RequestSchema):
    """A regression case measured live under a revision of the harness."""

    noun: ClassVar[str] = "measurement"
    revision: Name = ""
    attempts: Attempts = 10
    seed: Seed = DRAWN
    engine: Name = ""

    def to_plan(self, from_step: int) -> RerunPlan:
        """Return the plan from the case's step on."""
        return RerunPlan(mode=Mode.LIVE, from_step=from_step or None, **dict(self))
