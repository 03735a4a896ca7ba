"""The manifest of a live rollout: what was configured, what the server reported, what was probed."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.core.canonical import JSON, canonical_bytes, digest
from harnesslab.core.conditions.manifest import Condition, Known, Manifest, Provenance, Unknown
from harnesslab.core.running.recipe import DRAWN, POLICY, HarnessKind, Recipe
from harnesslab.core.running.rerun import RerunPlan
from harnesslab.runtime.driver.checkout import Checkout

UNKNOWN = "nobody stated it"
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "stop", "reasoning_effort")


def manifest(
    recipe: Recipe,
    plan: RerunPlan | None,
    code: Checkout | None,
    engine: Mapping[str, Condition],
    sandbox: Mapping[str, Condition],
    *,
    seed_honoured: bool | None,
    concurrency: int | None,
) -> Manifest:
    """Return the conditions of a rollout at its start."""
    configured = {
        **_harness(recipe, code),
        **_case(recipe),
        **_sampling(recipe, plan),
        "processing.preprocessing": None,
        "evaluator.name": "commands in the sandbox" if recipe.case.verifier.tests else None,
        "evaluator.revision": digest(recipe.case.to_json()) if recipe.case.verifier.tests else None,
        "tools.side_effects": {name: effects.value for name, effects in recipe.tools.items()},
        "serving.mode": None if concurrency is None else ("alone" if concurrency == 1 else "shared"),
        "serving.concurrency": concurrency,
    }
    known: dict[str, Condition] = {
        name: Known(value, Provenance.CONFIGURED) for name, value in configured.items() if value is not None
    }
    if seed_honoured is not None:
        known["seeds.honoured"] = Known(seed_honoured, Provenance.PROBED)
    known |= {**engine, **sandbox}
    return Manifest.from_conditions(known, unknown=UNKNOWN, reasons=_reasons(recipe, plan))


def _harness(recipe: Recipe, code: Checkout | None) -> dict[str, JSON]:
    harness = recipe.harness
    return {
        "harness.name": harness.name,
        "harness.revision": code.commit if code is not None else harness.revision or None,
        "harness.files_digest": code.files_digest if code is not None else None,
        "harness.protocol": POLICY if harness.kind is HarnessKind.LOOP else "gateway",
    }


def _case(recipe: Recipe) -> dict[str, JSON]:
    case, budgets = recipe.case, recipe.case.budgets
    return {
        "panel.case": case.name,
        "panel.case_digest": case.digest,
        "budgets.steps": budgets.steps,
        "budgets.wall": budgets.wall,
        "budgets.context": budgets.context,
        "budgets.output": budgets.output,
    }


def _sampling(recipe: Recipe, plan: RerunPlan | None) -> dict[str, JSON]:
    overrides = plan.overrides if plan is not None else {}
    settings: dict[str, JSON] = {"max_tokens": recipe.case.budgets.output, **recipe.settings, **overrides}
    values: dict[str, JSON] = {f"sampling.{name}": settings.get(name) for name in _SAMPLING}
    other = {name: value for name, value in settings.items() if name not in _SAMPLING}
    values["sampling.other"] = _short(other) if other else None
    values["seeds.generator"] = "harnesslab.seed/1"
    values["seeds.policy"] = "one per call"
    values["seeds.root"] = recipe.root_seed
    values["seeds.seed"] = str(recipe.seed("sampling"))
    return values


def _short(settings: Mapping[str, JSON]) -> JSON:
    """Return settings as they are, or by digest where a grammar or schema makes them long."""
    return {
        name: value if len(canonical_bytes(value)) <= 200 else {"digest": digest(value)}
        for name, value in settings.items()
    }


def _reasons(recipe: Recipe, plan: RerunPlan | None) -> dict[str, str]:
    reasons = {
        "budgets.reasoning": "no such budget is set",
        "budgets.cost": "no such budget is set",
        "harness.mechanisms": "the harness names them as they fire",
        "processing.observation": "the harness's own; what the model saw is recorded where it differs",
        "retrieval.snapshots": "the harness retrieves nothing through the worker",
        "evaluator.repeatability": "not measured",
        "serving.load": "measured during the rollout, and kept with it",
        "panel.order": "the rollout ran by itself",
    }
    if plan is not None and plan.seed == DRAWN:
        reasons["seeds.policy"] = "drawn for this attempt"
    return reasons


def changed(before: Mapping[str, Condition], after: Mapping[str, Condition]) -> dict[str, JSON]:
    """Return the server's facts that were others at the end than at the start."""
    found: dict[str, JSON] = {}
    for name, condition in before.items():
        now = after.get(name, Unknown("no longer stated"))
        if _text(condition) != _text(now):
            found[name] = {"before": _text(condition), "after": _text(now)}
    return found


def _text(condition: Condition) -> str:
    return canonical_bytes(condition.value).decode() if isinstance(condition, Known) else f"unknown: {condition.reason}"
