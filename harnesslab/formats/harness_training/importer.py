"""harness-training: a run folder with its experiment, decision and one rollout per task, or a single steps file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.core.running.rollout import VERDICT_UNTRUSTED, Outcome, Recording, Source
from harnesslab.core.trace.events import RolloutStarted
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.companions import INDEX, MEMO
from harnesslab.formats.harness_training.record import record_of
from harnesslab.formats.harness_training.run import Run, budgets, manifest_of, replayability_of
from harnesslab.formats.harness_training.steps import StepsReader
from harnesslab.formats.reading.inputs import InputFile, Report, Unit, json_lines
from harnesslab.formats.reading.recordings import attempt, some
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import instant, mapping, not_empty, number, text, whole

NAME = "harness-training"
OUTCOMES = {
    "solved": Outcome.SOLVED,
    "verified_rejected": Outcome.FAILED_VERIFICATION,
    "hit_step_cap": Outcome.STEP_CAP,
    "hit_timeout": Outcome.TIMEOUT,
    "verify_timeout": Outcome.VERIFY_TIMEOUT,
    "no_valid_action": Outcome.NO_VALID_ACTION,
    "crash": Outcome.CRASH,
    "unscorable_infra": Outcome.INFRA_ERROR,
}
_STEPS = "agent/steps.jsonl"
_EVENTS = {"completion_received", "step_completed", "completion_rejected", "policy_rule", "no_valid_action_step"}
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "reasoning_effort", "enable_thinking")
_EXPERIMENT = (
    "experiment_id",
    "kind",
    "git_commit_hash",
    "git_dirty",
    "parent_commit_hash",
    "baseline_experiment_id",
    "measurement_identity",
    "decision",
    "determinism_certification",
    "crash_reason",
    "config_path",
    "config",
    "started_at",
    "finished_at",
)


def recognises(shape: Shape) -> bool:
    """A run folder, its `experiment.json`, the lines of a steps file, or one of a tree's companions."""
    if shape.kind == "folder":
        return "experiment.json" in shape.names or any(_task_of(name) for name in shape.names)
    if shape.kind == "text":
        return shape.unit.only.read()[:64].startswith(b"# Learning memo")
    first = shape.first_object() or shape.object
    return (
        {"experiment_id", "git_commit_hash", "tasks"} <= shape.object.keys()
        or {"experiment_id", "git_commit_hash", "verdict"} <= first.keys()
        or (text(first.get("event")) in _EVENTS and "t_sec" in first)
    )


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield a run's rollouts by task in the order of its experiment, superseded attempts after their own."""
    run = _run_of(unit, report)
    tasks = _tasks(run)
    if not tasks:
        why = text(run.document.get("crash_reason")) or "the experiment names no task"
        raise FormatRefused(f"the run has no rollout: {why}", where=unit.name)
    yield from some(unit.name, report, _rollouts(run, tasks, report))


def experiments(unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
    """Yield the run as an experiment; a single steps file states none."""
    document = unit.files.get("experiment.json") or (None if unit.folder else unit.only)
    run = _run_of(unit, Report()) if document is not None else None
    if run is not None and text(run.document.get("experiment_id")):
        yield record_of(run)


def _rollouts(run: Run, tasks: list[str], report: Report) -> Iterator[Recording]:
    position = 0
    for task in tasks:
        for path in _attempts(run, task):
            make = partial(_recording, run, task, path, position, report)
            for made in attempt(report, f"{run.unit.name} {task}", make):
                position += 1
                yield made


def _run_of(unit: Unit, report: Report) -> Run:
    digest = unit.digest()
    if not unit.folder:
        return Run(unit, digest, *_single(unit))
    document: Mapping[str, JSON] = {}
    if "experiment.json" in unit.files:
        try:
            document = mapping(unit.files["experiment.json"].json())
        except FormatRefused as error:
            report.skip("experiment.json", error.what)
    else:
        report.skip("experiment.json", "missing: outcomes are read from the steps alone")
    facts = {key: document[key] for key in _EXPERIMENT if key in document}
    rows = [row for _, row in json_lines(unit.files[INDEX].read(), report, INDEX)] if INDEX in unit.files else []
    if INDEX in unit.files:
        facts |= {"indexed": bool(rows)} | ({"index": rows[-1]} if rows else {})
    if MEMO in unit.files:
        facts |= not_empty({"learning": unit.files[MEMO].read().decode("utf-8", "surrogateescape")})
    return Run(unit, digest, document, facts)


def _single(unit: Unit) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    """Return (experiment, facts) of a single file; raises `FormatRefused` for the companions of a tree."""
    hint = "import the experiments folder that holds it: its runs are then read with it"
    data = unit.only.read()
    if data.startswith(b"# Learning memo"):
        raise FormatRefused("a learning memo, which holds no rollout", where=unit.name, hint=hint)
    try:
        document = mapping(parse(data))
    except ValueError:
        document = {}
    if "tasks" in document:
        return document, {key: document[key] for key in _EXPERIMENT if key in document}
    first = next((row for _, row in json_lines(data, Report())), {})
    if "experiment_id" in first:
        raise FormatRefused("an index of runs, which holds no rollout", where=unit.name, hint=hint)
    return {}, {}


def _tasks(run: Run) -> list[str]:
    """List the tasks that the experiment names, then those that only have files."""
    named = list(mapping(run.document.get("tasks")))
    found = sorted({task for name in run.unit.files if (task := _task_of(name))})
    if not run.document and not run.unit.folder:
        return ["steps"]
    return [*named, *(task for task in found if task not in named)]


def _task_of(path: str) -> str:
    parts = path.split("/")
    return parts[1] if len(parts) == 4 and parts[0] == "tasks" and path.endswith(f"/{_STEPS}") else ""


def _attempts(run: Run, task: str) -> list[str]:
    """List the steps files of a task: the counted one, then archived ones; an empty name where there is none."""
    unit = run.unit
    if not unit.folder:
        return ["" if run.document else unit.only.path]
    folder = f"tasks/{task}/agent/"
    archived = sorted(
        name
        for name in unit.files
        if name.startswith(f"{folder}steps.") and name.endswith(".jsonl") and name != folder + "steps.jsonl"
    )
    return [f"tasks/{task}/{_STEPS}" if f"tasks/{task}/{_STEPS}" in unit.files else "", *archived]


def _recording(run: Run, task: str, path: str, position: int, report: Report) -> Recording:
    result = mapping(mapping(run.document.get("tasks")).get(task))
    archived = bool(path) and run.unit.folder and not path.endswith(f"/{_STEPS}")
    facts, chain = _task_files(run.unit, task, report)
    if archived:
        result, facts, chain = {}, not_empty({"superseded": True, "execution_drift": facts.get("execution_drift")}), []
    builder = TraceBuilder()
    reader = _reader(run, builder, report, path, chain)
    if path:
        reader.read(json_lines(run.unit.files[path].read(), report, path))
    manifest = manifest_of(run, task, reader)
    builder.events.insert(0, RolloutStarted(manifest=manifest.digest))
    outcome = Outcome.INTERRUPTED if archived else _outcome(run, task, result, reader, path, report)
    reward = number(mapping(result.get("metrics")).get("reward"))
    replayability, missing = replayability_of(run, reader, path)
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=text(result.get("error")) or None),
        outcome=outcome,
        case=task,
        source=Source(run.unit.name, run.source, NAME, position),
        panel=text(mapping(run.config.get("environment")).get("kind")),
        experiment=text(run.document.get("experiment_id")),
        harness=text(mapping(run.config.get("training_target")).get("module")) or NAME,
        revision=text(run.document.get("git_commit_hash")),
        model=text(run.provider.get("model_name")) or reader.model,
        engine=text(run.provider.get("provider")),
        tags=("superseded attempt",) if archived else (),
        reward=None if archived or outcome in VERDICT_UNTRUSTED else reward,
        replayability=replayability,
        missing=missing,
        started_at=instant(result.get("started_at")),
        ended_at=instant(result.get("finished_at")),
        budgets=budgets(run),
        facts=not_empty({"experiment": run.facts, "rollout": {**result, **facts}}),
        totals=_totals(result),
    )


def _totals(result: Mapping[str, JSON]) -> Totals:
    """Return what a task's result states of its calls and verdict; a superseded attempt has none."""
    mode = result.get("failure_mode")
    passed = {"solved": True, "verified_rejected": False}.get(text(mode))
    return Totals(calls=whole(mapping(result.get("metrics")).get("live_llm_calls")), passed=passed)


def _reader(run: Run, builder: TraceBuilder, report: Report, path: str, chain: list[Mapping[str, JSON]]) -> StepsReader:
    folder = path.rsplit("/agent/", 1)[0]
    output = next(
        (
            file.read().decode("utf-8", "surrogateescape")
            for name, file in run.unit.files.items()
            if path
            and name.startswith(f"{folder}/")
            and name.endswith("_verifier/test-stdout.txt")
            and "/determinism_check/" not in name
        ),
        None,
    )
    settings = {key: run.provider[key] for key in _SETTINGS if run.provider.get(key) is not None}
    model = text(run.provider.get("model_name"))
    return StepsReader(builder, report, path, model, settings, actions=chain, verifier_output=output)


def _task_files(unit: Unit, task: str, report: Report) -> tuple[dict[str, JSON], list[Mapping[str, JSON]]]:
    """Read what lies beside a rollout's steps: (facts, rows of the determinism chain)."""
    folder = f"tasks/{task}/"
    facts: dict[str, JSON] = {}
    chain: list[Mapping[str, JSON]] = []
    for name, file in unit.files.items():
        if not name.startswith(folder) or name.startswith(f"{folder}agent/"):
            continue
        short = name.removeprefix(folder).removeprefix("infra/")
        if short == "determinism_chain.jsonl":
            chain = [row for _, row in json_lines(file.read(), report, name)]
            facts["determinism_chain"] = list(chain)
        elif short.endswith(".jsonl"):
            facts[short.removesuffix(".jsonl")] = [row for _, row in json_lines(file.read(), report, name)]
        elif short.endswith(".json"):
            facts[short.removesuffix(".json")] = _document(file, name, report)
    return not_empty(facts), chain


def _document(file: InputFile, name: str, report: Report) -> JSON:
    try:
        return file.json()
    except FormatRefused as error:
        report.skip(name, error.what)
        return None


def _outcome(
    run: Run, task: str, result: Mapping[str, JSON], reader: StepsReader, path: str, report: Report
) -> Outcome:
    mode = text(result.get("failure_mode"))
    if mode:
        if mode not in OUTCOMES:
            report.remark(f"{run.unit.name} {task}", f"unknown failure mode {mode!r}: the outcome is left open")
        return OUTCOMES.get(mode, Outcome.UNKNOWN)
    if task in mapping(run.document.get("tasks")) and not path:
        return Outcome.NOT_RUN
    if reader.verdict is not None:
        return Outcome.SOLVED if reader.verdict else Outcome.FAILED_VERIFICATION
    return Outcome.UNKNOWN
