"""Puts one rollout's parts together: harness revision, sandboxes, engine, manifest, recorder and loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition, Manifest
from harnesslab.core.contracts import scrub
from harnesslab.core.running.ports import Child, EngineDown, EnginePort, Place, Sandbox, Sandboxes
from harnesslab.core.running.recipe import HarnessKind, Recipe
from harnesslab.core.running.record import Record
from harnesslab.core.running.rerun import Mode, RerunPlan, asks_engine
from harnesslab.core.trace.trace import Trace
from harnesslab.runtime.driver.checkout import Checkout, checkout
from harnesslab.runtime.driver.command import HARNESS_FOLDER, Agent, reachable, run_command
from harnesslab.runtime.driver.conditions import changed, manifest
from harnesslab.runtime.driver.episode import DrivenEpisode, Writer
from harnesslab.runtime.driver.frame import Result
from harnesslab.runtime.driver.loop import run_loop
from harnesslab.runtime.driver.queueing import QueueTime

POLICY_SDK = Path(__file__).resolve().parents[2] / "policy.py"
SDK_FOLDER = "/sdk"


def _nothing() -> None:
    """Do nothing: the default of `RolloutParts.leave`."""


@dataclass(frozen=True, slots=True)
class RolloutParts:
    """What a rollout is made with."""

    recipe: Recipe
    engine: EnginePort
    sandboxes: Sandboxes
    cache: Path
    """Folder of harness revisions."""
    plan: RerunPlan | None = None
    trace: Trace | None = None
    """The recording that a rerun serves from."""
    model: str = ""
    seed_honoured: bool | None = None
    ceiling: int | None = None
    queue: QueueTime = field(default_factory=QueueTime)
    """How long its requests wait for their turn at the engine."""
    leave: Callable[[], None] = _nothing
    """What a thread that asked the engine does before it ends, such as closing its connections."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known once a rollout is about to begin."""

    manifest: Manifest
    commit: str


@dataclass(frozen=True, slots=True)
class Done:
    """How a rollout went, for whoever closes its recorder."""

    result: Result
    facts: Mapping[str, JSON] = field(default_factory=dict)


def run(
    parts: RolloutParts,
    begin: Callable[[Begun], Writer],
    stopped: Callable[[], bool],
    after_step: Callable[[DrivenEpisode], None],
) -> Done:
    """Run a rollout; `begin` opens its recorder. Raises what makes it impossible to begin."""
    recipe = parts.recipe
    code = _code(parts)
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(_reachable(parts)) if recipe.harness.kind is HarnessKind.COMMAND else None
        opened = place(recipe) if agent is None else agent.place(place(recipe), code)
        sandbox = parts.sandboxes.open(opened)
        stack.callback(sandbox.close)
        before = parts.engine.conditions() if asks_engine(recipe, parts.plan) else None
        document = manifest(
            recipe,
            parts.plan,
            code,
            before or {},
            sandbox.conditions(),
            seed_honoured=parts.seed_honoured,
            concurrency=parts.ceiling,
        )
        episode = _episode(parts, begin(Begun(document, "" if code is None else code.commit)), sandbox, stopped)
        if agent is not None:
            result = run_command(episode, agent, document.digest, parts.leave, lambda: after_step(episode))
        else:
            result = run_loop(
                episode, lambda: _harness(parts, opened, code), document.digest, lambda: after_step(episode)
            )
        return Done(result, _facts(parts, episode, result, before))


def _reachable(parts: RolloutParts) -> contextlib.AbstractContextManager[Agent]:
    return reachable(parts.recipe.harness, parts.recipe.case.instruction, parts.model)


def _code(parts: RolloutParts) -> Checkout | None:
    """Return the harness's files; a command that is installed has none of its own."""
    harness = parts.recipe.harness
    if harness.kind is HarnessKind.COMMAND and not harness.repository:
        return None
    return checkout(harness.repository, harness.revision, parts.cache)


def _episode(parts: RolloutParts, writer: Writer, sandbox: Sandbox, stopped: Callable[[], bool]) -> DrivenEpisode:
    rules = _rules(parts.plan)
    return DrivenEpisode(
        recipe=parts.recipe,
        writer=writer,
        engine=parts.engine,
        sandbox=sandbox,
        stopped=stopped,
        plan=parts.plan,
        record=Record(parts.trace, rules) if parts.trace is not None else None,
        rules=rules,
        seed_honoured=parts.seed_honoured,
        model=parts.model,
        queue=parts.queue,
    )


def _rules(plan: RerunPlan | None) -> Sequence[str]:
    """Return the scrub rules under which requests are served: all of them where live tools speak in between."""
    return tuple(rule.key for rule in scrub.newest()) if plan is not None and plan.mode is Mode.HYBRID else ()


def place(recipe: Recipe) -> Place:
    """Return what a case's sandbox is opened with."""
    pins = None if recipe.pins is None else frozenset(recipe.pins)
    return Place(seed=recipe.seed("environment"), pins=pins)


def _harness(parts: RolloutParts, opened: Place, code: Checkout | None) -> Child:
    """Start the harness in a sandbox of its own, with its code and the SDK and nothing else."""
    readable = {f"{SDK_FOLDER}/harnesslab/policy.py": str(POLICY_SDK)}
    readable |= {HARNESS_FOLDER: str(code.folder)} if code is not None else {}
    environ = {"PYTHONPATH": f"{HARNESS_FOLDER}:{SDK_FOLDER}", "PYTHONDONTWRITEBYTECODE": "1"}
    inside = Place(opened.limits, readable, {}, environ, opened.seed, opened.clock, opened.pins)
    return parts.sandboxes.spawn(inside, ["python3", "-m", parts.recipe.harness.entry])


def _facts(
    parts: RolloutParts, episode: DrivenEpisode, result: Result, before: Mapping[str, Condition] | None
) -> dict[str, JSON]:
    facts: dict[str, JSON] = {"counts": episode.counts.to_json()}
    facts |= {"queued": round(parts.queue.seconds, 3)} if parts.queue.seconds else {}
    facts |= {"why": result.why} if result.why else {}
    facts |= result.facts
    facts |= {"crash_origin": result.origin} if result.origin else {}
    facts |= {"diverged": True} if result.diverged else {}
    if episode.missed is not None:
        facts["went_live_after"] = episode.missed.to_json()
    if before is not None:
        facts |= _engine_facts(parts.engine, before)
    return facts


def _engine_facts(engine: EnginePort, before: Mapping[str, Condition]) -> dict[str, JSON]:
    """Ask the server for its facts once more: a change during a rollout is recorded and flagged."""
    try:
        after = engine.conditions()
    except EngineDown as error:
        return {"engine_at_end": error.sentence}
    found = changed(before, after)
    return {"engine_changed": found} if found else {}
