"""Harbor: trial folders, trial results alone, and NeMo-Gym rows that carry one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from harnesslab.core.canonical import JSON, Digest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.core.running.rollout import Recording, Source
from harnesslab.core.trace.events import TestResult, UserTurn
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.atif.events import TrajectoryReader, logprobs, model_calls, token_ids
from harnesslab.formats.atif.trajectory import MISSING, agent_conditions, facts_of, first_instant
from harnesslab.formats.harbor import job as harbor_job
from harnesslab.formats.harbor import result as harbor_result
from harnesslab.formats.harbor.recording import recording
from harnesslab.formats.openai.response_items import Walk
from harnesslab.formats.reading.inputs import InputFile, Report, Unit, json_lines
from harnesslab.formats.reading.recordings import attempt, only, some
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import instant, items, mapping, not_empty, number, objects, text

NAME = "harbor"
_MAIN = "agent/trajectory.json"
_NO_TRAJECTORY = "model: the trial holds no trajectory, only its result"
_CONTINUATIONS = 100


def recognises(shape: Shape) -> bool:
    """A trial folder, a trial's result, rows with one as metadata, or a summary that is refused with its reason."""
    if shape.kind == "folder":
        return bool({"result.json", "config.json"} & shape.names)
    document = shape.object
    if harbor_result.is_trial(document) or _refusal(document):
        return True
    first = shape.first_object() or document
    return "response" in first and bool(_row_result(first))


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the trial, or the trials in the order of the file's rows."""
    digest = unit.digest()
    if unit.folder:
        yield only(unit.name, lambda: _folder(unit, Source(unit.name, digest, NAME), report))
        return
    data = unit.only.read()
    if any(_row_result(row) for _, row in json_lines(data, Report())):
        rows = [(line, row) for line, row in json_lines(data, report) if "response" in row]
        yield from some(unit.name, report, _rows(unit.name, digest, rows, report))
        return
    document = mapping(unit.only.json())
    if refusal := _refusal(document):
        raise FormatRefused(refusal[0], where=unit.name, hint=refusal[1])
    yield only(unit.name, lambda: _alone(document, Source(unit.name, digest, NAME)))


def experiments(unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
    """Yield the job of each trial, once."""
    if unit.folder:
        results = [_document(unit, "result.json", report)]
    else:
        rows = (row for _, row in json_lines(unit.only.read(), Report()))
        results = [found for row in rows if (found := _row_result(row) or row) and harbor_result.is_trial(found)]
    around = _around(unit)
    records = (
        harbor_job.record(result, around.get("config.json", {}), around.get("result.json", {})) for result in results
    )
    yield from {record.external_id: record for record in records if record is not None}.values()


def _around(unit: Unit) -> dict[str, Mapping[str, JSON]]:
    """Read what lies beside a trial: its job's files, and the results of its task's trials."""
    found: dict[str, Mapping[str, JSON]] = {}
    for name, file in unit.beside.items() if unit.folder else ():
        with suppress(FormatRefused):  # of a sibling, which says so itself
            found[name] = mapping(file.json())
    return found


def _rows(name: str, digest: Digest, rows: list[tuple[int, Mapping[str, JSON]]], report: Report) -> Iterator[Recording]:
    for position, (line, row) in enumerate(rows):
        yield from attempt(report, f"line {line}", partial(_row, row, Source(name, digest, NAME, position)))


def _refusal(document: Mapping[str, JSON]) -> tuple[str, str] | None:
    """Say why a document that belongs to a run holds no trace: (what, hint); None for any other document."""
    keys = document.keys()
    if harbor_job.is_job(document):
        what = "summary, which holds no trial's trace" if "stats" in keys else "configuration, which holds no result"
        return f"a Harbor job's {what}", "import the job's folder, with its trials"
    if keys >= {"trials_dir", "agent", "verifier"} and "verifier_result" not in keys:
        return "a Harbor trial's configuration, which holds no result", "import the trial's folder"
    rows = objects(document.get("results"))
    if "is_resolved" in keys or (rows and {"task_id", "is_resolved"} <= rows[0].keys()):
        return (
            "terminal-bench results, which state verdicts and hold no trajectory",
            "run the task with an agent that writes ATIF, and import its trial",
        )
    return None


def _row_result(row: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the Harbor result that a NeMo-Gym row carries, or an empty one."""
    for place in (row.get("metadata"), mapping(row.get("response")).get("metadata")):
        if harbor_result.is_trial(mapping(place)):
            return mapping(place)
    return {}


def _folder(unit: Unit, source: Source, report: Report) -> Recording:
    result = _document(unit, "result.json", report)
    if result and not harbor_result.is_trial(result):
        refusal = _refusal(result) or ("the folder's result.json is not a Harbor trial's", "import its trial folders")
        raise FormatRefused(refusal[0], where=unit.name, hint=refusal[1])
    if not result:
        config = _document(unit, "config.json", report)
        report.skip("result.json", "missing: how the trial ended is not known")
        result = {"config": config, "trial_name": config.get("trial_name"), "finished_at": "not stated"}
    trajectory = _document(unit, _MAIN, report)
    logs = sorted(name for name in unit.files if name.startswith("agent/"))
    if logs and _MAIN not in unit.files:
        report.skip("agent", f"no trajectory.json; {', '.join(logs[:3])} can be imported by themselves if known")
    builder = TraceBuilder()
    began = instant(result.get("started_at")) or instant(first_instant(trajectory))

    def beside(path: str) -> Mapping[str, JSON]:
        name = f"agent/{path.rsplit('/', 1)[-1]}"
        return _document(unit, name, report) if name in unit.files else {}

    reader = TrajectoryReader(builder, began, beside)
    _read_chain(reader, trajectory, report)
    _token_details(builder, result)
    reward = harbor_result.reward_of(result)
    if reward is None and not mapping(result.get("verifier_result")).get("rewards"):
        reward = _reward_file(unit)
    output, tests = _verifier_files(unit, report)
    if said := harbor_result.verification(result, reward, output, tests):
        builder.add(msgspec.structs.replace(said, step=max(reader.step, 0)))
    known = agent_conditions(trajectory, reader.model)
    facts = not_empty(
        {
            "result": harbor_result.facts_of(result),
            "trajectory": facts_of(trajectory),
            "exception": _text_file(unit, "exception.txt"),
        }
    )
    missing = MISSING if trajectory else _NO_TRAJECTORY
    return recording(result, builder, source, reward, known, facts, missing, _around(unit))


def _read_chain(reader: TrajectoryReader, trajectory: Mapping[str, JSON], report: Report) -> None:
    """Read a trajectory and those that continue it."""
    seen: set[str] = set()
    while trajectory:
        reader.read(trajectory)
        following = text(trajectory.get("continued_trajectory_ref"))
        if not following or following in seen or len(seen) > _CONTINUATIONS:
            break
        seen.add(following)
        trajectory = reader.beside(following)
        if not trajectory:
            report.skip(following, "the trajectory goes on in this file, which is not in the folder")
    for name in reader.missing:
        report.skip(name, "a sub-agent's trajectory that is not in the folder")


def _document(unit: Unit, name: str, report: Report) -> Mapping[str, JSON]:
    file: InputFile | None = unit.files.get(name)
    if file is None:
        return {}
    try:
        return mapping(file.json())
    except FormatRefused as error:
        report.skip(name, error.what)
        return {}


def _text_file(unit: Unit, name: str) -> str | None:
    file = unit.files.get(name)
    return file.read().decode("utf-8", "surrogateescape") if file else None


def _reward_file(unit: Unit) -> float | None:
    try:
        return number(float(_text_file(unit, "verifier/reward.txt") or "not stated"))
    except ValueError:
        return None


def _verifier_files(unit: Unit, report: Report) -> tuple[str | None, tuple[TestResult, ...]]:
    tests = harbor_result.ctrf_tests(_document(unit, "verifier/ctrf.json", report))
    return _text_file(unit, "verifier/test-stdout.txt"), tests


def _token_details(builder: TraceBuilder, result: Mapping[str, JSON]) -> None:
    """Give the main agent's model calls their token ids, where there is one entry for each of them."""
    details = objects(mapping(result.get("agent_result")).get("rollout_details"))
    calls = model_calls(builder)
    if len(details) != 1 or not calls:
        return
    for key, name, convert in (
        ("prompt_token_ids", "prompt_token_ids", token_ids),
        ("completion_token_ids", "token_ids", token_ids),
        ("logprobs", "logprobs", logprobs),
    ):
        rows = items(details[0].get(key))
        if len(rows) != len(calls):
            continue
        for place, row in zip(calls, rows, strict=True):
            if getattr(builder.events[place], name) is None:
                changes: dict[str, Any] = {name: convert(row)}
                builder.events[place] = msgspec.structs.replace(builder.events[place], **changes)


def _alone(result: Mapping[str, JSON], source: Source) -> Recording:
    builder = TraceBuilder()
    reward = harbor_result.reward_of(result)
    if said := harbor_result.verification(result, reward, None, ()):
        builder.add(said)
    return recording(result, builder, source, reward, {}, {"result": harbor_result.facts_of(result)}, _NO_TRAJECTORY)


def _row(row: Mapping[str, JSON], source: Source) -> Recording:
    """Read a NeMo-Gym row: the trial's result, and the conversation as Responses items."""
    result, request, response = _row_result(row), mapping(row.get("responses_create_params")), mapping(row["response"])
    if not result:
        raise FormatRefused("the row carries no Harbor result")
    builder = TraceBuilder()
    walk = Walk(builder)
    walk.call_fields = {"model": text(response.get("model"))}
    walk.tools = items(response.get("tools")) or items(request.get("tools")) or None
    for position, message in enumerate(items(request.get("input"))):
        if mapping(message).get("role") == "user":
            builder.add(UserTurn(content=mapping(message).get("content"), origin=f"input {position}"))
        walk.transcript.say(message)
    for position, item in enumerate(objects(response.get("output"))):
        walk.take(item, origin=f"output {position}")
    walk.close()
    _token_details(builder, result)
    reward = harbor_result.reward_of(result)
    if said := harbor_result.verification(result, reward, None, ()):
        builder.add(msgspec.structs.replace(said, step=max(walk.step, 0)))
    known: dict[str, JSON] = {
        "model.name": text(response.get("model")) or None,
        "sampling.temperature": number(response.get("temperature")),
        "sampling.top_p": number(response.get("top_p")),
    }
    facts = {
        "result": harbor_result.facts_of(result),
        "response": not_empty({key: value for key, value in response.items() if key not in ("output", "tools")}),
        **not_empty({"reward": row.get("reward"), "instance_id": row.get("instance_id")}),
    }
    missing = "model: the row keeps the conversation, not the requests as sent"
    return recording(result, builder, source, reward, known, facts, missing)
