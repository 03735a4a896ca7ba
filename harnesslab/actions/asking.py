"""What people ask to be measured or trained, in the words of forms, JSON and the command line: everything by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from harnesslab.accounts.models import User
from harnesslab.actions.experiments.measurements import Purpose, measure
from harnesslab.actions.trainings.lifecycle import train
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import Conflict, InvalidValue
from harnesslab.core.measuring.experiments import ExperimentKind, MeasuringPlan, State
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.queries.experiments.measurements import experiment_named, measuring_plan_of
from harnesslab.queries.panels import revision_named
from harnesslab.queries.projects.bindings import get_project
from harnesslab.queries.trainings.training import training_plan
from harnesslab.store.models import Experiment, PanelRevision, Training

HOTTEST = 10.0
LONGEST_TIMEOUT = 7 * 24 * 3600.0
_DIGEST = re.compile("[0-9a-f]{4,64}")
_A = TypeVar("_A", bound="MeasuringRequest")


class MeasuringRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an experiment and a training have in common."""

    project: str
    panel: str
    """Its name; `NAME@DIGEST` for another revision than the newest."""
    engine: str
    trials: int = 1
    seed: str = "12345"
    temperature: float | None = 0.0
    """None for the engine's own."""
    cases: tuple[str, ...] | None = None
    """A subset of the panel's; None for all of them."""

    @property
    def plan(self) -> MeasuringPlan:
        """How each case is measured; raises `InvalidValue`."""
        hot = self.temperature
        if hot is not None and not 0 <= hot <= HOTTEST:
            raise InvalidValue(f"{hot} is no temperature", where="temperature", hint=f"from 0 to {HOTTEST:.0f}")
        settings: dict[str, JSON] = {} if hot is None else {"temperature": hot}
        if self.cases is not None and not self.cases:
            raise InvalidValue("no case was chosen", where="cases")
        return MeasuringPlan(self.engine, self.trials, self.seed, settings, self.cases).checked()

    @property
    def revision_of_panel(self) -> PanelRevision:
        """The panel's revision that is named; raises `NotFound`."""
        name, _, digest = self.panel.rpartition("@")
        if name and _DIGEST.fullmatch(digest):
            return revision_named(self.project, name, digest)
        return revision_named(self.project, self.panel)


class AskedExperiment(MeasuringRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pass of a harness revision over a panel."""

    revision: str
    """A commit, tag or branch."""
    kind: str = ""
    """See `core.experiments.Kind`; empty for a candidate where it has a baseline, else an evaluation."""
    baseline: str = ""
    """External id of the experiment that it is judged against."""


class AskedTraining(MeasuringRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A loop of iterations; it has either a folder of patches or a command."""

    epochs: int
    patches: str = ""
    command: tuple[str, ...] = ()
    """It runs as the worker does."""
    name: str = ""
    """How the proposer is shown, such as the model behind the command."""
    effort: str = ""
    timeout: float = 1800.0
    criterion: str = "strict_pareto"
    certify: bool = True
    remeasure: bool = False
    unchanged: bool = False


def asked_of(kind: type[_A], document: Mapping[str, object]) -> _A:
    """Read what is asked from JSON or a form's values; raises `InvalidValue` naming the field."""
    try:
        return msgspec.convert(document, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error).replace("$.", ""), where="what is asked") from None


def ask_experiment(asked: AskedExperiment, user: User | None = None, key: str = "") -> Experiment:
    """Order an experiment; raises what `measure` raises, and `InvalidValue` for what can't be asked."""
    project = get_project(asked.project)
    if asked.kind not in ("", *ExperimentKind):
        raise InvalidValue(
            f"no kind of experiment: {asked.kind[:40]!r}", where="kind", hint=f"one of {', '.join(ExperimentKind)}"
        )
    baseline = experiment_named(asked.baseline, asked.project) if asked.baseline else None
    kind = (
        ExperimentKind(asked.kind)
        if asked.kind
        else ExperimentKind.CANDIDATE
        if baseline is not None
        else ExperimentKind.EVAL
    )
    if kind is ExperimentKind.CANDIDATE and baseline is None:
        raise InvalidValue("a candidate needs a baseline that it is judged against", where="baseline")
    if baseline is not None and not baseline.plan:
        raise Conflict(
            "it was not measured here, so that nothing measured here can be judged against it", where=baseline.name
        )
    if baseline is not None and baseline.state == State.CANCELLED:
        raise InvalidValue("it was cancelled, so that nothing can be judged against it", where=baseline.name)
    purpose = Purpose(kind, baseline, parent=baseline.revision if baseline is not None else "")
    panel, plan = asked.revision_of_panel, asked.plan
    made = measure(project, asked.revision.strip(), panel, plan, purpose, user=user, key=key)
    if (made.project_id, made.panel_id, made.kind, measuring_plan_of(made)) != (project.pk, panel.pk, kind, plan):
        raise Conflict("this key was used for another experiment", where=made.name)
    return made


def ask_training(asked: AskedTraining, user: User | None = None, key: str = "") -> Training:
    """Begin a training; raises what `train` raises, and `InvalidValue` for what can't be asked."""
    if bool(asked.patches) == bool(asked.command):
        raise InvalidValue("either a folder of patches or a command proposes changes", where="proposer")
    if not math.isfinite(asked.timeout) or not 0 < asked.timeout <= LONGEST_TIMEOUT:
        raise InvalidValue(f"{asked.timeout} seconds", where="timeout", hint=f"at most {LONGEST_TIMEOUT:.0f}")
    proposer = Proposer(
        kind=ProposerKind.PATCHES if asked.patches else ProposerKind.COMMAND,
        folder=asked.patches,
        command=asked.command,
        timeout=asked.timeout,
        name=asked.name,
        effort=asked.effort,
    )
    plan = TrainingPlan(
        measure=asked.plan,
        proposer=proposer,
        epochs=asked.epochs,
        criterion=asked.criterion,
        certify=asked.certify,
        remeasure=asked.remeasure,
        unchanged=asked.unchanged,
    )
    project, panel = get_project(asked.project), asked.revision_of_panel
    made = train(project, panel, plan, user=user, key=key)
    if (made.project_id, made.panel_id, training_plan(made)) != (project.pk, panel.pk, plan):
        raise Conflict("this key was used for another training", where=f"training {made.pk}")
    return made
