"""A rerun's plan from a form and back: steps count from 1 there, from 0 in the plan."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.running.recipe import DRAWN, SAME
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.pages.forms import form_values, read
from harnesslab.requests.reruns import RerunRequest

NUMBER = "number"
SWITCH = "switch-"
"""What the names of the form's switches begin with."""
UNUSED = {
    Mode.LIVE.value: {"switches", "on_miss", "self_test"},
    Mode.HYBRID.value: {"self_test"},
    Mode.RECORDED.value: set(RerunRequest.model_fields) - {"mode", "revision", "self_test"},
}
"""Fields that a mode has no use for: the form hides them."""


def plan_from_form(form: Mapping[str, str]) -> RerunPlan:
    """Read a plan; what a mode has no use for is left out. Raises `InvalidRequest` naming the fields."""
    document = {name: value for name, value in form_values(RerunRequest, form).items() if value != ""}
    numbered = document.get("seed") == NUMBER
    if numbered:
        number = form.get("seed_number", "")
        document["seed"] = "" if number in (SAME, DRAWN) else number  # a word is no number
    document["switches"] = {
        name.removeprefix(SWITCH): switch
        for name, switch in form.items()
        if name.startswith(SWITCH) and switch not in ("", Switch.RECORDED)
    }
    unused = UNUSED.get(document.get("mode", Mode.LIVE.value), set())
    used = {name: value for name, value in document.items() if name not in unused}
    if used.get("from_step") == 0:
        del used["from_step"]  # from the first step on, it is no fork
    return read(RerunRequest, used, {"seed": "seed_number"} if numbered else None).to_plan()


def form_of(plan: RerunPlan) -> dict[str, str]:
    """Return the form's fields that state a plan: the inverse of `plan_from_form`."""
    by_number = plan.seed not in (SAME, DRAWN)
    fields = {
        "mode": plan.mode.value,
        "attempts": plan.attempts,
        "step": None if plan.from_step is None else plan.from_step + 1,
        "engine": plan.engine,
        "seed": NUMBER if by_number else plan.seed,
        "seed_number": plan.seed if by_number else "",
        "temperature": plan.temperature,
        "max_tokens": plan.max_tokens,
        "revision": plan.revision,
        "self_test": "1" if plan.self_test else "",
        "on_miss": plan.on_miss.value,
        **{f"{SWITCH}{name}": switch.value for name, switch in plan.switches.items()},
    }
    return {name: str(value) for name, value in fields.items() if value not in (None, "")}
