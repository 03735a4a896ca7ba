"""What is common to the rollouts of a harness-training run, and the conditions that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON, Digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Replayability
from harnesslab.formats.harness_training.steps import StepsReader
from harnesslab.formats.reading.inputs import Unit
from harnesslab.formats.reading.values import items, mapping, not_empty, number, text


@dataclass(frozen=True, slots=True)
class Run:
    """What is common to the rollouts of a run."""

    unit: Unit
    source: Digest
    document: Mapping[str, JSON]
    """The experiment; empty for a single steps file."""
    facts: Mapping[str, JSON]

    @property
    def config(self) -> Mapping[str, JSON]:
        """The configuration it ran with."""
        return mapping(self.document.get("config"))

    @property
    def provider(self) -> Mapping[str, JSON]:
        """The part of it about the model."""
        return mapping(self.config.get("llm_provider_config"))


def budgets(run: Run) -> dict[str, float]:
    """Return the declared limits of each episode."""
    given = {
        "steps": run.config.get("max_steps"),
        "context": run.provider.get("max_context_length"),
        "reasoning": run.provider.get("thinking_budget_tokens"),
        "output": run.provider.get("max_tokens"),
    }
    return {name: value for name, raw in given.items() if (value := number(raw)) is not None}


def manifest_of(run: Run, task: str, reader: StepsReader) -> Manifest:
    """Return the conditions of one task\'s rollout."""
    config, provider = run.config, run.provider
    environment, plugins = mapping(config.get("environment")), mapping(config.get("plugins"))
    rules: list[JSON] = [*sorted(reader.rules)]
    values: dict[str, JSON] = {
        "harness.name": text(mapping(config.get("training_target")).get("module")) or "harness-training",
        "harness.revision": text(run.document.get("git_commit_hash")) or None,
        "harness.mechanisms": rules or None,
        "panel.name": environment.get("kind"),
        "panel.order": items(environment.get("task_names")) or None,
        "panel.case": task,
        "model.name": provider.get("model_name") or reader.model or None,
        "model.provider": provider.get("provider"),
        "model.tokenizer": provider.get("tokenizer_name"),
        "sampling.temperature": provider.get("temperature"),
        "sampling.top_p": provider.get("top_p"),
        "sampling.max_tokens": provider.get("max_tokens"),
        "sampling.reasoning_effort": provider.get("reasoning_effort"),
        "seeds.seed": provider.get("seed"),
        "environment.pins": not_empty({"execution": plugins.get("execution"), "llm_cache": plugins.get("llm_cache")})
        or None,
        "serving.concurrency": config.get("max_rollout_concurrency"),
        **{f"budgets.{name}": value for name, value in budgets(run).items()},
    }
    reasons = {
        "engine.name": "the run names a provider and an address, not the server behind them",
        "budgets.wall": "task timeouts are set by the environment and not written down",
        "panel.case_digest": "the run holds no content of its tasks",
    }
    return Manifest.of(values, unknown="not recorded by harness-training runs", reasons=reasons)


def replayability_of(run: Run, reader: StepsReader, path: str) -> tuple[Replayability, str]:
    """Say what can be rerun of a rollout: (replayability, missing boundary and why)."""
    if not path or not reader.builder.payloads:
        return Replayability.VIEW_ONLY, "model: the rollout has no recorded step"
    if reader.gaps:
        return (
            Replayability.VIEW_ONLY,
            f"model: {reader.gaps} messages or tool sets of its requests are not in the file",
        )
    if not run.document.get("git_commit_hash"):
        return Replayability.VIEW_ONLY, "harness: a steps file names neither its commit nor its configuration"
    if run.document.get("git_dirty"):
        return Replayability.VIEW_ONLY, "harness: the working tree had changes that no commit holds"
    return Replayability.RECORDED, "environment: the tasks' files and sandbox are not in the run, so it can't run live"
