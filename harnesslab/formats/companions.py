"""What lies around the folders that are imported as one: an experiments tree's index and memo, a job's own files.

A run's own part of the index and memo belongs to it. What changes as the tree or job grows lies only beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import FormatRefused
from harnesslab.formats.harbor.job import is_job
from harnesslab.formats.reading.inputs import InputFile
from harnesslab.formats.reading.values import mapping, text

INDEX = "../runs.jsonl"
"""Where a run unit holds its rows of the experiments index."""
MEMO = "../learning.md"
"""Where a run unit holds its lines of the learning memo; beside the unit, the whole of it."""
JOB = ("config.json", "result.json")
"""A Harbor job's own files, beside each of its trials."""
TRIALS = "trials/"
"""Where beside a trial the results of its task's trials are, its own included."""


def tree_files(files: Mapping[str, InputFile], runs: set[str]) -> set[str]:
    """Return the files of an experiments tree that are shared out to its runs."""
    parents = {parent(run) for run in runs if run}
    return {_join(folder, name) for folder in parents for name in ("runs.jsonl", "learning.md")} & files.keys()


def job_files(files: Mapping[str, InputFile], trials: set[str]) -> dict[str, InputFile]:
    """Return the files of Harbor jobs that lie beside their trials, by path; a stray one of that name is none.

    They are read here once for all trials, and what a job says of each trial is left to the trial.
    """
    found: dict[str, InputFile] = {}
    for folder in sorted({parent(trial) for trial in trials if trial}):
        for name in JOB:
            place = _join(folder, name)
            document = _object(files[place]) if place in files else {}
            if is_job(document):
                kept = {key: value for key, value in document.items() if key != "trial_results"}
                found[place] = InputFile.of_bytes(name, canonical_bytes(kept))
    return found


def run_companions(
    files: Mapping[str, InputFile], folder: str, inside: Mapping[str, InputFile], run: str
) -> dict[str, InputFile]:
    """Cut a run's own part from the tree's index and memo, so that its digest doesn't change as the tree grows."""
    found: dict[str, InputFile] = {}
    index, memo = files.get(_join(folder, "runs.jsonl")), files.get(_join(folder, "learning.md"))
    rows = [line for line in index.read().splitlines() if run.encode() in line] if index else []
    own = [row for row in rows if _object(InputFile.of_bytes(INDEX, row)).get("experiment_id") == run]
    if index:
        found[INDEX] = InputFile.of_bytes(INDEX, b"".join(row + b"\n" for row in own))
    if memo and "experiment.json" in inside:
        commit = text(_object(inside["experiment.json"]).get("git_commit_hash"))
        found[MEMO] = InputFile.of_bytes(MEMO, memo_lines(memo.read(), run, commit))
    return found


def run_surroundings(files: Mapping[str, InputFile], run: str) -> dict[str, InputFile]:
    """Return the whole memo of a run's tree."""
    memo = files.get(_join(parent(run), "learning.md")) if run else None
    return {MEMO: memo.renamed(MEMO)} if memo else {}


def trial_surroundings(
    files: Mapping[str, InputFile], trial: str, trials: set[str], jobs: Mapping[str, InputFile]
) -> dict[str, InputFile]:
    """Return a trial's job, and the results of the trials that its name says are of the same task."""
    if not trial:
        return {}
    found = {name: jobs[place] for name in JOB if (place := _join(parent(trial), name)) in jobs}
    for other in sorted(trials):
        if parent(other) == parent(trial) and _task(other) == _task(trial) and f"{other}/result.json" in files:
            place = f"{TRIALS}{PurePosixPath(other).name}"
            found[place] = files[f"{other}/result.json"].renamed(place)
    return found


def memo_lines(memo: bytes, run: str, commit: str) -> bytes:
    """Return the items of a learning memo that name a run or its commit, each with its indented lines."""
    kept: list[bytes] = []
    taking = False
    names = [name.encode() for name in (run, commit[:12]) if name]
    for line in memo.splitlines():
        if not line.startswith((b" ", b"\t")):
            taking = line.startswith(b"-") and any(name in line for name in names)
        if taking:
            kept.append(line + b"\n")
    return b"".join(kept)


def parent(folder: str) -> str:
    """Return the folder that a folder is in; empty for the outermost."""
    above = str(PurePosixPath(folder).parent)
    return "" if above == "." else above


def _task(trial: str) -> str:
    return PurePosixPath(trial).name.rsplit("__", 1)[0]


def _object(file: InputFile) -> Mapping[str, JSON]:
    try:
        return mapping(file.json())
    except FormatRefused:
        return {}


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
