"""A rerun's plan in words."""

from __future__ import annotations

from harnesslab.core.running.recipe import DRAWN, SAME
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan

DOES = {
    Mode.LIVE: "Everything is executed anew.",
    Mode.HYBRID: "Each boundary is served from the record, live, or failing.",
    Mode.RECORDED: "The harness runs, everything else is served from the record.",
}
PROVES = {
    Mode.LIVE: "It shows how often the same conditions lead to the same end; what it sent itself proves it live.",
    Mode.HYBRID: "It shows what one boundary alone changes.",
    Mode.RECORDED: "It costs nothing and shows only that the record is complete.",
}


def plan_words(plan: RerunPlan) -> str:
    """Say what a plan asks for, in one sentence; steps are one-based here, as on pages."""
    parts = [f"{plan.attempts} attempt{'' if plan.attempts == 1 else 's'}"]
    match plan.mode:
        case Mode.LIVE:
            parts.append("everything executed anew")
        case Mode.RECORDED:
            parts.append("everything but the harness served from the record")
        case Mode.HYBRID:
            named = ", ".join(f"{name} {switch.value}" for name, switch in plan.switches.items())
            parts.append(f"{named}, the rest served from the record" if named else "everything served from the record")
    if plan.from_step:
        before = "step 1 is" if plan.from_step == 1 else f"steps 1 to {plan.from_step} are"
        parts.append(f"forked at step {plan.from_step + 1}: {before} rebuilt from the record")
    if plan.mode is not Mode.LIVE:
        parts.append("stopping at a miss" if plan.on_miss is OnMiss.STOP else "going live at a miss, labelled")
    if plan.mode is not Mode.RECORDED:
        parts.append({SAME: "the recorded seed", DRAWN: "a seed drawn for each"}.get(plan.seed, f"seed {plan.seed}"))
    parts += [f"temperature {plan.temperature:g}"] if plan.temperature is not None else []
    parts += [f"at most {plan.max_tokens:,} tokens a call"] if plan.max_tokens is not None else []
    parts += [f"engine {plan.engine}"] if plan.engine else []
    parts += [f"harness revision {plan.revision[:10]}"] if plan.revision else []
    parts += ["with one altered answer in the record: it must diverge"] if plan.self_test else []
    return "; ".join(parts) + "."
