"""tau-bench results: a list of trials, each a chat transcript with a simulated user and a reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace.events import RolloutStarted, Verification
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.conversation import add_conversation
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.sniff import Shape

NAME = "tau-bench"
_UNKNOWN = "not recorded by tau-bench results"


def recognises(shape: Shape) -> bool:
    """A list of objects with a task, a reward and a trajectory."""
    return {"task_id", "reward", "traj"} <= shape.first_object().keys()


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the trials by task and trial number."""
    document = unit.only.json()
    rows: list[tuple[Mapping[str, JSON], list[JSON]]] = []
    for index, row in enumerate(document if isinstance(document, list) else []):
        messages = row.get("traj") if isinstance(row, Mapping) else None
        if isinstance(row, Mapping) and isinstance(messages, list):
            rows.append((row, messages))
        else:
            report.skip(f"item {index}", "no trajectory")
    rows.sort(key=lambda item: (str(item[0].get("task_id")), _trial(item[0])))
    source_digest = unit.digest()
    for position, (row, messages) in enumerate(rows):
        yield _recording(row, messages, Source(unit.name, source_digest, NAME, position))


def _recording(row: Mapping[str, JSON], messages: list[JSON], source: Source) -> Recording:
    case, reward, info = str(row.get("task_id")), row.get("reward"), row.get("info")
    score = float(reward) if isinstance(reward, int | float) else None
    outcome = Outcome.UNKNOWN if score is None else Outcome.SOLVED if score >= 1 else Outcome.FAILED_VERIFICATION
    manifest = Manifest.of(
        {
            "panel.name": "tau-bench",
            "panel.case": case,
            "panel.case_digest": _task_digest(info),
            "evaluator.name": "tau-bench reward",
        },
        unknown=_UNKNOWN,
    )
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    steps = add_conversation(builder, messages, simulated_user=True)
    if score is not None:
        details = info.get("reward_info") if isinstance(info, Mapping) else None
        builder.add(
            Verification(
                step=max(steps - 1, 0),
                passed=score >= 1,
                reward=score,
                extra={"reward_info": details} if details else {},
            )
        )
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome),
        outcome=outcome,
        case=case,
        source=source,
        panel="tau-bench",
        trial=_trial(row),
        trial_stated=isinstance(row.get("trial"), int),
        reward=score,
        replayability=Replayability.VIEW_ONLY,
        missing="model: the requests are not recorded, only the conversation; no model name, settings or seed",
        facts={"info": info} if info is not None else {},
    )


def _trial(row: Mapping[str, JSON]) -> int:
    trial = row.get("trial")
    return trial if isinstance(trial, int) else 0


def _task_digest(info: JSON) -> str | None:
    task = info.get("task") if isinstance(info, Mapping) else None
    return digest(task) if task is not None else None
