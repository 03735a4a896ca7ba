"""What a proposer is given to read: the baseline case by case, its unsolved traces, and earlier candidates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, ModelCall, ToolCall, Verification
from harnesslab.core.trace.labels import label, result_line
from harnesslab.core.trace.messages import text_of
from harnesslab.queries.experiments.measurements import measured
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.queries.trainings.training import concluded
from harnesslab.store.models import Experiment

TRACES = 24
"""Traces of unsolved cases that are written out."""
LONGEST = 12_000
"""Characters of one of them."""


def evidence(baseline: Experiment) -> dict[str, bytes]:
    """Return the files of a proposer's evidence folder."""
    found = measured(baseline.pk, anatomies=True)
    rows = []
    traces: dict[str, bytes] = {}
    for case, cells in found.cases.items():
        for cell in cells:
            row = {"case": case, "trial": cell.trial, "outcome": cell.outcome.value, "steps": cell.steps}
            tokens = {"input_tokens": cell.input, "output_tokens": cell.output}
            rows.append({**row, **tokens, "rollout": cell.rollout})
            if cell.outcome is not Outcome.SOLVED and len(traces) < TRACES:
                traces[f"unsolved-{len(traces):02d}.txt"] = _written(cell.rollout, case).encode("utf-8", "replace")
    history = [msgspec.to_builtins(each) for each in concluded(baseline.project)]
    document = {"experiment": baseline.name, "commit": baseline.revision, "solved": sorted(found.solved), "cases": rows}
    return {"baseline.json": _json(document), "candidates.json": _json(history), **traces}


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=True).encode()


def _written(rollout_id: int, case: str) -> str:
    """Write a rollout out in plain text: each action with what came of it."""
    rollout = get_rollout(rollout_id)
    lines = [f"case {case}: {rollout.outcome}"]
    for step, what in _told(StoredTraceReader(rollout)):
        lines.append(f"[{step}] {what}")
        if sum(map(len, lines)) > LONGEST:
            return "\n".join([*lines, "[… cut]"])
    return "\n".join(lines)


def _told(reader: StoredTraceReader) -> Iterator[tuple[int, str]]:
    for event in reader.trace().events:
        named = label(event)
        match event:
            case ModelCall():
                yield (
                    event.step,
                    f"model: {named.detail}" + (f" (rejected: {event.rejected})" if event.rejected else ""),
                )
            case ToolCall():
                yield event.step, f"{named.what}: {named.detail} → {result_line(event)}\n{text_of(event.result)[:800]}"
            case HarnessAction():
                yield event.step, f"harness: {named.what} {named.detail}"
            case Verification():
                for test in event.tests:
                    yield event.step, f"test {test.name}: {_verdicts[test.passed]} {test.detail[:300]}"
            case _:
                continue


_verdicts: Mapping[bool | None, str] = {True: "passed", False: "failed", None: "not judged"}
