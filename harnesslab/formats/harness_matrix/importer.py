"""Harness matrices: results of agents × scenarios × trials, with checks and tool calls; one experiment per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial

from harnesslab.core.canonical import JSON, Digest, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import ModelCall, RolloutStarted, TestResult, ToolCall, Usage, UserTurn, Verification
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.harness_matrix.results import Results, Trial
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.recordings import attempt, some
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, text, whole

NAME = "harness-matrix"
_IN_EVENTS = ("checks", "debug_calls", "final_reply", "full_reply", "traceback")
"""What the events hold; all else of a trial stays with its facts."""
_MISSING = "model: the file keeps checks, tool calls and the last reply, neither requests nor rounds"


def recognises(shape: Shape) -> bool:
    """A document with a run, its scenarios and a result per cell."""
    return {"run", "scenarios", "cells"} <= shape.object.keys()


def experiments(unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
    """Yield one experiment per cell."""
    results = Results.of(unit.only.json())
    for cell in results.cells:
        yield ExperimentRecord(
            external_id=results.experiment(cell),
            panel=NAME,
            kind=ExperimentKind.EVAL,
            revision=results.revision,
            mechanism=" · ".join(filter(None, (text(results.config(cell).get(key)) for key in ("harness", "model")))),
            started_at=results.started_at,
            facts={"format": NAME, "cell": cell, "config": dict(results.config(cell)), "run": dict(results.run)},
        )


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the trials by cell and scenario."""
    results, source = Results.of(unit.only.json()), unit.digest()
    yield from some(unit.name, report, _recordings(unit, source, results, report))


def _recordings(unit: Unit, source: Digest, results: Results, report: Report) -> Iterator[Recording]:
    for position, trial in enumerate(results.trials()):
        made = partial(_recording, results, trial, Source(unit.name, source, NAME, position))
        yield from attempt(report, f"{trial.cell} {trial.scenario} trial {trial.number}", made)


def _recording(results: Results, trial: Trial, source: Source) -> Recording:
    row, config = trial.row, results.config(trial.cell)
    outcome = _outcome(row)
    manifest = _manifest(results, trial)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    if outcome is not Outcome.NOT_RUN:
        _add_events(builder, results, trial)
    error = text(row.get("error")) or text(mapping(row.get("settled")).get("why")) or text(row.get("why"))
    begun, took = instant(row.get("started_at")), number(row.get("duration_s"))
    facts = {key: value for key, value in row.items() if key not in _IN_EVENTS}
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, error=error or None),
        outcome=outcome,
        case=trial.scenario,
        source=source,
        panel=NAME,
        experiment=results.experiment(trial.cell),
        harness=text(config.get("harness")),
        revision=results.revision,
        model=text(config.get("model")),
        engine=text(config.get("provider")),
        trial=max(trial.number - 1, 0),
        trial_stated=True,
        tags=("hard fail",) if items(row.get("hard_fails")) else (),
        reward=None if outcome in (Outcome.NOT_RUN, Outcome.CRASH) else float(outcome is Outcome.SOLVED),
        replayability=Replayability.VIEW_ONLY,
        missing=_MISSING,
        started_at=begun,
        ended_at=begun + timedelta(seconds=took) if begun and took is not None else None,
        facts=not_empty({"trial": facts, "class": results.group(trial.scenario)}),
    )


def _outcome(row: Mapping[str, JSON]) -> Outcome:
    """Say how a trial ended: solved when all checks hold in the end; a run that broke off was not judged."""
    if row.get("skip"):
        return Outcome.NOT_RUN
    if row.get("eventual") is True and not items(row.get("hard_fails")):
        return Outcome.SOLVED
    return Outcome.CRASH if row.get("outcome") == "unsettled" else Outcome.FAILED_VERIFICATION


def _add_events(builder: TraceBuilder, results: Results, trial: Trial) -> None:
    """Add the user's turns, the tool calls in order, the last reply and the checks, as one step: rounds are unknown."""
    row, prompts = trial.row, results.prompts(trial.scenario)
    for place, prompt in enumerate(prompts):
        builder.add(UserTurn(content=prompt, simulated=True, origin=f"turn {place}"))
    for place, call in enumerate(_calls(row)):
        builder.add(_tool_call(call, place))
    reply = text(row.get("full_reply")) or text(row.get("final_reply"))
    _add_reply(builder, results, trial, reply)
    checks = objects(row.get("checks"))
    # what broke off was judged as far as it came, which is no verdict
    solved = None if _outcome(row) is Outcome.CRASH else row.get("eventual") is True
    builder.add(
        Verification(
            passed=solved,
            reward=None if solved is None else float(solved),
            scores=not_empty({"one_shot": row.get("one_shot"), "eventual": row.get("eventual")}),
            tests=tuple(_test(check) for check in checks),
            error="; ".join(str(fail) for fail in items(row.get("hard_fails"))) or None,
        )
    )


def _calls(row: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """List the tool calls: with arguments and errors where they were kept, else by name alone."""
    return objects(row.get("debug_calls")) or objects(mapping(row.get("wire")).get("tool_calls"))


def _tool_call(call: Mapping[str, JSON], place: int) -> ToolCall:
    result, failed = text(call.get("outcome")), call.get("outcome") not in (None, "available")
    return ToolCall(
        name=text(call.get("name")) or "unnamed",
        arguments=call.get("input"),
        has_result=False,
        error=text(call.get("error")) or (result if failed else None),
        extra=not_empty({"outcome": call.get("outcome")}),
        origin=f"tool call {place}",
    )


def _add_reply(builder: TraceBuilder, results: Results, trial: Trial, reply: str) -> None:
    """Add one model call that stands for all of the trial, with the last reply and the tokens of all."""
    wire, usage = mapping(trial.row.get("wire")), mapping(trial.row.get("usage"))
    total, output = whole(usage.get("total")), whole(usage.get("output"))
    known = total is not None and output is not None and 0 < output <= total
    window, _ = builder.ask([{"role": "user", "content": prompt} for prompt in results.prompts(trial.scenario)])
    builder.answer(
        ModelCall(
            model=text(results.config(trial.cell).get("model")),
            input=window,
            text=reply,
            finish_reason=text(next(reversed(items(wire.get("finish_reasons"))), None)) or None,
            usage=Usage(input=total - output, output=output) if known and total and output else None,
            extra=not_empty({"stands_for": "all model calls of the trial", "turns": usage.get("turns")}),
        )
    )


def _test(check: Mapping[str, JSON]) -> TestResult:
    failure = check.get("failure")
    return TestResult(text(check.get("check")) or "unnamed", failure is None, text(failure))


def _manifest(results: Results, trial: Trial) -> Manifest:
    config, definition = results.config(trial.cell), results.definition(trial.scenario)
    values: dict[str, JSON] = {
        "harness.name": text(config.get("harness")) or None,
        "harness.revision": results.revision or None,
        "panel.name": NAME,
        "panel.order": results.scenarios or None,
        "panel.case": trial.scenario,
        "panel.case_digest": digest(definition) if definition else None,
        "model.name": text(config.get("model")) or None,
        "model.provider": text(config.get("provider")) or None,
        "environment.platform": text(config.get("sandbox")) or None,
        "evaluator.name": "the scenario's checks",
    }
    reasons = {"panel.case_digest": "the file does not define the scenario"}
    return Manifest.of(values, unknown="not recorded by harness matrices", reasons=reasons)
