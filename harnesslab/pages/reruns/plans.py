"""A rerun's plan from a form: steps count from 1 there, from 0 in the plan."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from harnesslab.core.canonical import digest
from harnesslab.core.errors import InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.recipe import DRAWN, SAME
from harnesslab.core.running.rerun import Mode, OnMiss, RerunPlan, Switch

_E = TypeVar("_E", bound=StrEnum)
NUMBER = "number"
SWITCH = "switch-"
"""What the names of the form's switches begin with."""


def plan_from_form(form: Mapping[str, str]) -> RerunPlan:
    """Read a plan; what a mode has no use for is left out. Raises `InvalidValue` naming the field."""
    mode = _choice(form, "mode", Mode, Mode.LIVE)
    if mode is Mode.RECORDED:
        return RerunPlan(mode=mode, revision=_text(form, "revision"), self_test=bool(form.get("self_test")))
    step, attempts = _whole(form, "step"), _whole(form, "attempts")
    if step == 0:
        raise InvalidValue("no step: 0", where="step", hint="steps count from 1 here")
    switches = {
        name.removeprefix(SWITCH): _choice(form, name, Switch, Switch.RECORDED)
        for name in form
        if name.startswith(SWITCH) and mode is Mode.HYBRID
    }
    return RerunPlan(
        mode=mode,
        switches={name: switch for name, switch in switches.items() if switch is not Switch.RECORDED},
        on_miss=_choice(form, "on_miss", OnMiss, OnMiss.STOP) if mode is Mode.HYBRID else OnMiss.STOP,
        from_step=step - 1 if step and step > 1 else None,
        attempts=1 if attempts is None else attempts,
        engine=_text(form, "engine"),
        temperature=_number(form, "temperature"),
        max_tokens=_whole(form, "max_tokens"),
        seed=_seed(form),
        revision=_text(form, "revision"),
    )


def form_of(plan: RerunPlan) -> dict[str, str]:
    """Return the form's fields that state a plan: the inverse of `plan_from_form`."""
    by_number = plan.seed not in (SAME, DRAWN)
    stated = {
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
    return {name: str(value) for name, value in stated.items() if value not in (None, "")}


def key_of(form: Mapping[str, str]) -> str:
    """Return the key of what was sent: the same for a second click, another for a page changed after going back."""
    fields = {name: value for name, value in sorted(form.items()) if name not in ("key", "csrfmiddlewaretoken")}
    return f"{form.get('key', '')[:24] or secrets.token_urlsafe(16)} {digest(fields)[-12:]}"


def _text(form: Mapping[str, str], name: str) -> str:
    return form.get(name, "").strip()


def _choice(form: Mapping[str, str], name: str, kind: type[_E], default: _E) -> _E:
    value = _text(form, name)
    try:
        return kind(value) if value else default
    except ValueError:
        raise InvalidValue(f"{value[:40]!r} is none", where=name, hint=f"one of {', '.join(kind)}") from None


def _whole(form: Mapping[str, str], name: str) -> int | None:
    value = _text(form, name)
    number = natural(value)
    if value and number is None:
        raise InvalidValue(f"{value[:40]!r} is no whole number", where=name.replace("_", " "))
    return number


def _number(form: Mapping[str, str], name: str) -> float | None:
    value = _text(form, name)
    try:
        return float(value) if value else None
    except ValueError:
        raise InvalidValue(f"{value[:40]!r} is no number", where=name) from None


def _seed(form: Mapping[str, str]) -> str:
    chosen = _text(form, "seed") or SAME
    if chosen != NUMBER:
        return chosen
    number = _text(form, "seed_number")
    if not number:
        raise InvalidValue("which seed?", where="seed", hint="a number from 0 to 2^63-1")
    return number
