"""What a rerun would do before it is asked for: what can be controlled, what it costs, and why it can't be run."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.running.recipe import HarnessKind, Recipe
from harnesslab.core.running.record import flows_on
from harnesslab.core.running.rerun import (
    Control,
    Mode,
    OnMiss,
    RerunCost,
    RerunPlan,
    Unsafe,
    controls,
    cost,
    unsafe_fork,
)
from harnesslab.core.trace.trace import Trace
from harnesslab.queries.engines import engine_named
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.reruns.listing import recipe_of
from harnesslab.queries.rollouts.listing import RolloutRow, get_rollout, row_of
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout


class BoundaryPreview(ReadModel):
    """What a rerun can do with one boundary of a recording."""

    name: str
    events: int
    switches: list[str]
    why: str


class Preview(ReadModel):
    """What a plan would do with one rollout; steps count from 0, costs are of all attempts."""

    rollout: RolloutRow
    boundaries: list[BoundaryPreview]
    refused: str
    """Why the plan can't be run; empty where it can."""
    nearest: int | None
    """The nearest step that can be forked at, where the plan's can't."""
    latest: int
    """The last step that can be forked at; 0 where that is only the whole."""
    latest_why: str
    """Why no later one can."""
    external: list[str]
    """Tools that will not be executed again."""
    calls: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    seconds: float | None
    commands: int | None
    sentence: str


def preview(rollout_id: int, plan: RerunPlan) -> Preview:
    """Say what a plan would do and cost, and why it can't be run where it can't; raises `NotFound`."""
    rollout = get_rollout(rollout_id)
    trace = StoredTraceReader(rollout).trace()
    recipe: Recipe | None = None
    try:
        recipe = recipe_of(rollout)
        shown = controls(trace, recipe.tools, kind=recipe.harness.kind.value)
        unsafe = unsafe_fork(trace, plan.from_step) if plan.from_step else None
        refused = refusal(rollout, recipe, plan, shown, unsafe) or _lacking(recipe, plan, trace)
    except Conflict as error:
        shown, unsafe, refused = controls(trace, {}, kind="none"), None, error.sentence
    external = [item.boundary.partition(":")[2] for item in shown if "external" in item.why]
    costs = cost(trace, plan, external).times(plan.attempts) if recipe is not None else None
    last = unsafe_fork(trace, rollout.steps)
    return Preview(
        rollout=row_of(rollout),
        boundaries=[
            BoundaryPreview(name=item.boundary, events=item.events, switches=list(item.switches), why=item.why)
            for item in shown
        ],
        refused=refused,
        nearest=unsafe.nearest if unsafe is not None else None,
        latest=last.nearest if last is not None else max(rollout.steps - 1, 0),
        latest_why=last.why if last is not None else "",
        external=external,
        calls=costs.calls if costs is not None else None,
        prompt_tokens=costs.prompt_tokens if costs is not None else None,
        output_tokens=costs.output_tokens if costs is not None else None,
        seconds=costs.seconds if costs is not None else None,
        commands=costs.commands if costs is not None else None,
        sentence=cost_sentence(costs, plan) if costs is not None else "",
    )


def _lacking(recipe: Recipe, plan: RerunPlan, trace: Trace) -> str:
    """Say what a plan needs that is not there, or nothing."""
    if plan.self_test and flows_on(trace) is None:
        return "no result of a tool flows on into a later request, so that nothing can be altered"
    try:
        engine_named(plan.engine or recipe.engine)
    except NotFound as error:
        return error.sentence
    return ""


def together(previews: Sequence[Preview], plan: RerunPlan) -> str:
    """Say what a plan costs over several rollouts, with how many of them can't be run again beside it."""
    known = [item for item in previews if item.calls is not None]
    gone = f" {len(previews) - len(known)} more can't be run again." if len(known) < len(previews) else ""
    if len(known) < 2:
        return f"{known[0].sentence}{gone}" if known else ""

    def total(name: str) -> int | None:
        values = [getattr(item, name) for item in known]
        return None if None in values else sum(values)

    seconds = [item.seconds for item in known if item.seconds is not None]
    whole = RerunCost(
        total("calls") or 0,
        total("prompt_tokens"),
        total("output_tokens"),
        sum(seconds) if len(seconds) == len(known) else None,
        total("commands") or 0,
    )
    said = cost_sentence(whole, plan)
    return f"Over {len(known)} rollouts: {said[0].lower()}{said[1:]}{gone}"


def cost_sentence(costs: RerunCost, plan: RerunPlan) -> str:
    """Say what a rerun costs in one sentence."""
    anew = _count(costs.commands, "command") + (" is" if costs.commands == 1 else " are") + " executed anew"
    if not costs.calls:
        said = f"It makes no model call; {anew if costs.commands else 'no command is executed'}"
    else:
        parts = [_count(costs.calls, "model call")]
        parts.append(_tokens(costs.prompt_tokens, "prompt"))
        parts.append(_tokens(costs.output_tokens, "output"))
        took = "" if costs.seconds is None else f", in about {_duration(costs.seconds)}"
        each = f"{_count(plan.attempts, 'attempt')}: about " if plan.attempts > 1 else "About "
        said = f"{each}{', '.join(parts)}{took}; {anew if costs.commands else 'no command is executed'}"
    more = "; more where it leaves the record" if plan.on_miss is OnMiss.LIVE and plan.mode is Mode.HYBRID else ""
    return f"{said}{more}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tokens(number: int | None, what: str) -> str:
    return f"{what} tokens unknown" if number is None else f"{number:,} {what} tokens"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def refusal(
    rollout: Rollout, recipe: Recipe, plan: RerunPlan, controls: Sequence[Control], unsafe: Unsafe | None
) -> str:
    """Say why a plan can't be run, or nothing."""
    if rollout.head is None:
        return "it still runs"
    if unsafe is not None:
        where = f"it can't be forked at step {(plan.from_step or 0) + 1}: {unsafe.why}"
        return f"{where}; the nearest safe one is step {unsafe.nearest + 1}"
    if plan.from_step is not None and plan.from_step >= max(rollout.steps, 1):
        return f"it has {_count(rollout.steps, 'step')}, so that it can't be forked at step {plan.from_step + 1}"
    if recipe.harness.kind is HarnessKind.COMMAND and plan.mode is not Mode.LIVE:
        tools = "tools of a command harness run anew whenever it runs"
        return "" if plan.mode is Mode.HYBRID else f"a recorded rerun needs every boundary served: {tools}"
    return _unswitchable(plan, controls)


def _unswitchable(plan: RerunPlan, shown: Sequence[Control]) -> str:
    """Say which switch the recording doesn't allow, or nothing; one for all tools leaves external ones served."""
    for boundary, switch in plan.switches.items():
        offered = [item for item in shown if boundary in (item.boundary, item.boundary.partition(":")[0])]
        if not offered and ":" in boundary:
            return f"this recording has no {boundary}"
        if offered and not any(switch in item.switches for item in offered):
            return f"{boundary} can't be {switch.value} for this recording: {offered[0].why}"
    return ""
