"""An Inspect log's header, and one sample of it as a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from harnesslab.core.canonical import JSON, Digest, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import RolloutStarted, Usage, Verification
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.inspect.events import SampleReader
from harnesslab.formats.inspect.messages import Pools, chat_message
from harnesslab.formats.inspect.scores import verification
from harnesslab.formats.reading.conversation import add_conversation
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, seconds, text, whole

NAME = "inspect"
_LIMITS = {"time": Outcome.TIMEOUT, "working": Outcome.TIMEOUT, "operator": Outcome.INTERRUPTED}
"""Every other limit (messages, tokens, cost) caps the episode."""
_SAMPLE = (
    "input",
    "choices",
    "target",
    "sandbox",
    "files",
    "setup",
    "metadata",
    "store",
    "scores",
    "model_usage",
    "error",
    "error_retries",
    "limit",
    "total_time",
    "working_time",
    "uuid",
)


@dataclass(frozen=True, slots=True)
class Log:
    """What is common to the samples of a log."""

    name: str
    digest: Digest
    header: Mapping[str, JSON]

    @property
    def spec(self) -> Mapping[str, JSON]:
        """What was evaluated, and how."""
        return mapping(self.header.get("eval"))

    @property
    def status(self) -> str:
        """How the whole evaluation ended, by the log's own word."""
        return text(self.header.get("status")) or "not stated"

    @property
    def experiment(self) -> str:
        """Name of the evaluation; older logs name only their run, which may hold several tasks."""
        named = text(self.spec.get("eval_id"))
        parts = (text(self.spec.get(key)) for key in ("run_id", "task", "task_id"))
        return named or " ".join(dict.fromkeys(filter(None, parts)))

    def sort_key(self) -> Callable[[str, int], tuple[int, str, int]]:
        """Return the order of samples by (id, epoch): that of the data set, then the epoch."""
        listed = items(mapping(self.spec.get("dataset")).get("sample_ids"))
        places = {str(item): place for place, item in reversed(list(enumerate(listed)))}

        def key(case: str, epoch: int) -> tuple[int, str, int]:
            return places.get(case, len(places)), case.zfill(20) if case.isdigit() else case, epoch

        return key


def evaluation(log: Log) -> ExperimentRecord:
    """Return what a log states of its evaluation as a whole."""
    spec, stats = log.spec, mapping(log.header.get("stats"))
    results = mapping(log.header.get("results"))
    return ExperimentRecord(
        external_id=log.experiment,
        panel=text(spec.get("task")),
        kind=ExperimentKind.EVAL,
        revision=text(mapping(spec.get("revision")).get("commit")),
        mechanism=" ".join(filter(None, (text(spec.get("task")), text(spec.get("model"))))),
        metrics={text(score.get("name")): score.get("metrics") for score in objects(results.get("scores"))},
        started_at=instant(stats.get("started_at")) or instant(spec.get("created")),
        ended_at=instant(stats.get("completed_at")),
        facts=not_empty({"format": NAME, "status": log.status, "eval": dict(spec), "results": dict(results)}),
    )


def recording(log: Log, sample: Mapping[str, JSON], position: int) -> Recording:
    """Return one sample of one epoch as a recording."""
    builder, pools = TraceBuilder(), Pools.of(sample)
    began = _began(sample)
    reader = SampleReader(builder, pools, began)
    reader.read(items(sample.get("events")))
    if not reader.models:
        _add_messages(builder, pools, sample, log)
    if not reader.scored:
        for name, score in mapping(sample.get("scores")).items():
            builder.add(verification(pools.resolve(score), name, step=max(reader.step, 0)))
    outcome, reward = _outcome(sample, builder)
    case, epoch = str(sample.get("id", "unnamed")), whole(sample.get("epoch"))
    manifest = _manifest(log, sample, case, reader)
    builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    replayability, missing = _replayability(log, reader)
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=text(mapping(sample.get("error")).get("message")) or None),
        outcome=outcome,
        case=case,
        source=Source(log.name, log.digest, NAME, position),
        panel=text(log.spec.get("task")),
        experiment=log.experiment,
        harness=_harness(log),
        revision=text(mapping(log.spec.get("revision")).get("commit")),
        model=text(log.spec.get("model")),
        engine=_provider(log) or "",
        trial=max((epoch or 1) - 1, 0),
        trial_stated=epoch is not None,
        tags=tuple(tag for tag in items(log.spec.get("tags")) if isinstance(tag, str)),
        reward=reward,
        replayability=replayability,
        missing=missing,
        started_at=began,
        ended_at=instant(sample.get("completed_at")),
        budgets=_budgets(log),
        facts=_facts(log, sample, pools),
        totals=Totals.of(_model_usage(sample)),
    )


def _model_usage(sample: Mapping[str, JSON]) -> Usage:
    """Return the tokens that a sample states of all its models together."""
    counted = [usage.inspect(each) for each in mapping(sample.get("model_usage")).values()]
    return usage.total([each for each in counted if each is not None])


def _began(sample: Mapping[str, JSON]) -> datetime | None:
    """Return when a sample began, by its own word or by that of its first event.

    A sample waits for its turn after `sample_init` and the opening of its span, for hours in a busy evaluation.
    """
    queued = ("sample_init", "span_begin")
    events = objects(sample.get("events"))
    ready = next((place for place, event in enumerate(events) if event.get("event") not in queued), 0)
    waited = any(event.get("event") == "sample_init" for event in events[:ready])
    times = (instant(event.get("timestamp")) for event in events[ready if waited else 0 :])
    return instant(sample.get("started_at")) or next((time for time in times if time), None)


def _add_messages(builder: TraceBuilder, pools: Pools, sample: Mapping[str, JSON], log: Log) -> None:
    """Add the conversation of a sample without model events."""
    messages = [chat_message(pools.resolve(item)) for item in items(sample.get("messages"))]

    def failed(position: int, message: JSON) -> dict[str, Any]:
        error = mapping(mapping(message).get("error"))
        said = ": ".join(filter(None, (text(error.get("type")), text(error.get("message")))))
        return {"error": said or None, "timed_out": error.get("type") == "timeout"}

    add_conversation(builder, messages, model=text(log.spec.get("model")), result_details=failed)


def _outcome(sample: Mapping[str, JSON], builder: TraceBuilder) -> tuple[Outcome, float | None]:
    """Say how a sample ended: an error is never a failure, and no score is not zero."""
    final = [
        event for event in builder.events if isinstance(event, Verification) and not event.extra.get("intermediate")
    ]
    first = final[0] if final else None
    reward = first.reward if first else None
    error, limit = sample.get("error"), mapping(sample.get("limit"))
    if error is not None:
        cancelled = "Cancelled" in text(mapping(error).get("message"))
        return (Outcome.INTERRUPTED if cancelled else Outcome.CRASH), reward
    if first is not None and first.passed:
        return Outcome.SOLVED, reward
    if limit:
        return _LIMITS.get(text(limit.get("type")), Outcome.STEP_CAP), reward
    if first is None or first.passed is None:
        return Outcome.UNKNOWN, reward
    return Outcome.FAILED_VERIFICATION, reward


def _harness(log: Log) -> str:
    solver = text(log.spec.get("solver"))
    steps = [text(step.get("solver")) for step in objects(mapping(log.header.get("plan")).get("steps"))]
    return solver or " + ".join(filter(None, steps)) or "inspect_ai"


def _provider(log: Log) -> str | None:
    provider, slash, _ = text(log.spec.get("model")).partition("/")
    return provider if slash else None


def _budgets(log: Log) -> dict[str, float]:
    config, generate = mapping(log.spec.get("config")), _generate(log)
    given = {
        "wall": config.get("time_limit"),
        "reasoning": generate.get("reasoning_tokens"),
        "output": generate.get("max_tokens"),
        "cost": config.get("cost_limit"),
    }
    return {name: value for name, raw in given.items() if (value := number(raw)) is not None}


def _generate(log: Log) -> Mapping[str, JSON]:
    return {
        **not_empty(mapping(mapping(log.header.get("plan")).get("config"))),
        **not_empty(mapping(log.spec.get("model_generate_config"))),
    }


def _manifest(log: Log, sample: Mapping[str, JSON], case: str, reader: SampleReader) -> Manifest:
    spec, generate = log.spec, _generate(log)
    config, dataset = mapping(spec.get("config")), mapping(spec.get("dataset"))
    version = spec.get("task_version")
    rest = {
        key: value
        for key, value in generate.items()
        if key not in ("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "reasoning_effort", "seed")
    }
    scorers = [text(scorer.get("name")) for scorer in objects(spec.get("scorers"))]
    values: dict[str, JSON] = {
        "harness.name": _harness(log),
        "harness.revision": text(mapping(spec.get("revision")).get("commit")) or None,
        "panel.name": text(spec.get("task")) or None,
        "panel.revision": str(version) if version is not None else None,
        "panel.order": items(dataset.get("sample_ids")) or None,
        "panel.case": case,
        "panel.case_digest": digest({"input": sample.get("input"), "target": sample.get("target")}),
        "model.name": text(spec.get("model")) or None,
        "model.provider": _provider(log),
        "sampling.temperature": generate.get("temperature"),
        "sampling.top_p": generate.get("top_p"),
        "sampling.top_k": generate.get("top_k"),
        "sampling.max_tokens": generate.get("max_tokens"),
        "sampling.stop": generate.get("stop_seqs"),
        "sampling.reasoning_effort": generate.get("reasoning_effort"),
        "sampling.other": rest or None,
        "seeds.seed": generate.get("seed"),
        "tools.schemas": digest(reader.tools) if reader.tools else None,
        "evaluator.name": ", ".join(filter(None, scorers)) or ", ".join(mapping(sample.get("scores"))) or None,
        "serving.concurrency": config.get("max_samples"),
        **{f"budgets.{name}": value for name, value in _budgets(log).items()},
    }
    reasons = {
        "environment.image": "the log names a sandbox kind and its configuration, not an image digest",
        "budgets.steps": "Inspect limits messages and tokens, not steps",
    }
    return Manifest.of(values, unknown="not recorded by Inspect logs", reasons=reasons)


def _replayability(log: Log, reader: SampleReader) -> tuple[Replayability, str]:
    revision = mapping(log.spec.get("revision"))
    if not reader.models:
        return Replayability.VIEW_ONLY, "model: the log holds no model events, only the conversation"
    if reader.unrecorded:
        return (
            Replayability.VIEW_ONLY,
            f"model: {reader.unrecorded} of {reader.models} calls lack their request or response",
        )
    if not revision.get("commit"):
        return Replayability.VIEW_ONLY, "harness: the log names no commit of the task's code"
    if revision.get("dirty") is True:
        return Replayability.VIEW_ONLY, "harness: the working tree had changes that no commit holds"
    return (
        Replayability.RECORDED,
        "environment: neither the served model's revision nor the sandbox image is identified",
    )


def _facts(log: Log, sample: Mapping[str, JSON], pools: Pools) -> dict[str, JSON]:
    about = {key: pools.resolve(sample[key]) for key in _SAMPLE if key in sample}
    header = {key: value for key, value in log.header.items() if key not in ("samples", "reductions", "results")}
    took = seconds(instant(sample.get("started_at")), instant(sample.get("completed_at")))
    return not_empty({"log": header, "sample": not_empty(about), "wall_time": took})
