"""The job that imports the runs and traces of an MLflow server."""

from __future__ import annotations

import json
from typing import Any

from harnesslab.actions.experiments.sources import store_record
from harnesslab.actions.imports.importing import import_unit
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import NotFound
from harnesslab.formats.mlflow.run import record_of
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.formats.reading.values import mapping, text
from harnesslab.runtime.mirror.server import TrackingServer
from workers.tasks.job_runs import JobRun


def run_mlflow_import(attempt: JobRun) -> dict[str, Any]:
    """Import experiment by experiment; what is there already is found to be, so that a killed import goes on."""
    server = TrackingServer(str(attempt.payload["address"]))
    wanted = str(attempt.payload.get("experiment") or "")
    found = {key: name for key, name in server.experiments().items() if wanted in ("", name)}
    if not found:
        raise NotFound(f"there is no experiment {wanted!r}", where=server.address)
    counts = {"runs": 0, "traces": 0, "known": 0}
    refused: list[JSON] = []
    for key, name in found.items():
        project = str(attempt.payload.get("project") or "") or name
        runs = list(server.runs(key))
        stated = [mapping(run.get("info")) for run in runs]
        ids = {text(info.get("run_name")): text(info.get("run_id")) for info in stated}
        for run in runs:
            store_record(record_of(run, project, ids))
            counts["runs"] += 1
        for data in server.traces(key):
            if attempt.stopped():
                return {"cancelled": True}
            trace = str(json.loads(data)["info"].get("trace_id"))
            unit = Unit(f"{trace}.json", {f"{trace}.json": InputFile.of_bytes(f"{trace}.json", data)})
            result = import_unit(unit, project=project)
            counts["known" if result.status == "duplicate" else "traces"] += result.status != "refused"
            if result.status == "refused":
                refused.append(result.reason)
            attempt.progress(sum(counts.values()), f"{counts['runs']} runs, {counts['traces']} traces of {name}")
    return {**counts, "refused": refused[:20]}
