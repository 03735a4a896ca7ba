"""What a mini-swe-agent run states of itself: its end, its conditions, its totals, and what can be rerun of it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace.stated import Totals
from harnesslab.formats.reading.values import items, mapping, number, text, whole

HARNESS = "mini-swe-agent"
_UNKNOWN = "not recorded by mini-swe-agent trajectories"
_ENDS = {
    "Submitted": Outcome.UNKNOWN,
    "LimitsExceeded": Outcome.STEP_CAP,
    "TimeExceeded": Outcome.TIMEOUT,
    "RepeatedFormatError": Outcome.NO_VALID_ACTION,
    "UserInterruption": Outcome.INTERRUPTED,
    "KeyboardInterrupt": Outcome.INTERRUPTED,
}
_SERVICE = re.compile(r"API|RateLimit|Authentication|Connection|ServiceUnavailable|InternalServer|ContextWindow")


def outcome_of(info: Mapping[str, JSON], config: Mapping[str, JSON]) -> tuple[Outcome, str | None]:
    """Return how the run ended; with info but no exit status it was cut short."""
    if not info:
        return Outcome.UNKNOWN, None
    status = text(info.get("exit_status"))
    if not status:
        return Outcome.INTERRUPTED, "no exit status: the run did not reach its end"
    if status in _ENDS:
        return _ENDS[status], None if status == "Submitted" else status
    return (Outcome.INFRA_ERROR if _SERVICE.search(status) else Outcome.CRASH), status


def manifest_of(run: Mapping[str, JSON], info: Mapping[str, JSON]) -> Manifest:
    config = mapping(info.get("config"))
    agent, model, environment = (mapping(config.get(key)) for key in ("agent", "model", "environment"))
    settings = mapping(model.get("model_kwargs"))
    templates = {key: value for key, value in agent.items() if key.endswith(("observation_template", "error_template"))}
    observing = {**templates, **{key: model[key] for key in ("observation_template",) if key in model}}
    return Manifest.of(
        {
            "harness.name": HARNESS,
            "harness.revision": info.get("mini_version"),
            "panel.case": run.get("instance_id"),
            "budgets.steps": agent.get("step_limit"),
            "budgets.cost": agent.get("cost_limit"),
            "model.name": model.get("model_name"),
            "sampling.temperature": settings.get("temperature"),
            "sampling.top_p": settings.get("top_p"),
            "sampling.max_tokens": settings.get("max_tokens"),
            "sampling.reasoning_effort": settings.get("reasoning_effort"),
            "sampling.other": {
                key: value
                for key, value in settings.items()
                if key not in ("temperature", "top_p", "max_tokens", "reasoning_effort", "seed")
            }
            or None,
            "seeds.seed": settings.get("seed"),
            "environment.image": environment.get("image"),
            "environment.platform": environment.get("cwd"),
            "processing.observation": observing or None,
        },
        unknown=_UNKNOWN,
        reasons={"seeds.seed": "no seed among the model arguments"} if settings else {},
    )


def replayability_of(manifest: Manifest) -> tuple[Replayability, str]:
    needed = ("panel.case", "harness.revision", "model.name", "environment.image")
    absent = [name for name in needed if manifest.value(name) is None]
    if absent:
        return Replayability.VIEW_ONLY, f"harness: not stated: {', '.join(absent)}"
    return Replayability.LIVE, "model: requests are rebuilt from the conversation, retries are not recorded"


def totals_of(run: Mapping[str, JSON], info: Mapping[str, JSON]) -> Totals:
    """Return what the run states of its messages, calls and cost."""
    messages, stated = items(run.get("messages")), mapping(info.get("model_stats"))
    return Totals(
        messages=len(messages),
        kept_messages=sum(isinstance(message, Mapping) for message in messages),
        calls=whole(stated.get("api_calls")) or None,
        cost=number(stated.get("instance_cost")) or None,
    )
