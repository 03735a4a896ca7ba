"""Server time of the experiment pages over 300 experiments of 100 cases, and what the loop costs beside the rollouts.

    .venv/bin/python benchmarks/experiments.py [--home FOLDER]      # FOLDER keeps the data for another run

Times are medians of five requests to Django's own client in this process, after one that is not counted. The yardstick
in the same run is one bare query that reads what any of these pages must read: a row for every rollout of the project.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
EXPERIMENTS, CASES = 300, 100
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def fill() -> tuple[int, list[int]]:
    """Store the experiments, each a candidate of the one before; returns (project, experiments)."""
    from harnesslab.actions.rollouts.storing import store_recording
    from harnesslab.store.models import Case, Experiment, Project, Rollout
    from harnesslab.store.text import frozen
    from tests.recordings import recording

    known = Project.objects.filter(name="bench").first()
    if known is not None:
        return known.pk, list(Experiment.objects.filter(project=known).order_by("pk").values_list("pk", flat=True))
    chance = random.Random(5)
    first = store_recording(recording(["ls", "cat a"], case="case-0"), None)
    project = Project.objects.create(name="bench")
    panel = project.panels.create(name="panel")
    cases = [Case.objects.create(panel=panel, name=f"case-{number}").pk for number in range(CASES)]
    base = {field.attname: getattr(first, field.attname) for field in Rollout._meta.concrete_fields}
    del base["id"]
    base |= {"project_id": project.pk, "anatomy": Rollout.objects.get(pk=first.pk).anatomy}
    solved: set[int] = set()
    baseline: Experiment | None = None
    for number in range(EXPERIMENTS):
        now = solved ^ {case for case in cases if chance.random() < 0.02}
        better = baseline is not None and now > solved
        verdict = "promoted" if better else "rejected"
        decision = {"new_solves": [], "regressions": [], "outcome": verdict}
        made = Experiment.objects.create(
            project=project,
            name=f"exp-{number:03}",
            kind="candidate" if baseline is not None else "baseline",
            revision=f"{number:040x}",
            baseline=baseline,
            baseline_name=baseline.name if baseline is not None else "",
            verdict="" if baseline is None else verdict,
            reason="" if baseline is None else "no_net_improvement",
            decision=frozen(decision) if baseline is not None else b"",
            solved=len(now),
            total=CASES,
            started_at=FIRST + timedelta(hours=number),
        )
        rows = [
            Rollout(
                **base
                | {
                    "case_id": case,
                    "experiment_id": made.pk,
                    "outcome": "solved" if case in now else "failed_verification",
                    "path": chance.randbytes(16),
                }
            )
            for case in cases
        ]
        Rollout.objects.bulk_create(rows, batch_size=1000)
        if baseline is None or better:
            solved, baseline = now, made
    return fill()


def milliseconds(do: Callable[[], object]) -> float:
    """Return the median of five times after one that is not counted."""
    times = []
    for _ in range(6):
        began = time.perf_counter()
        do()
        times.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(times[1:]), 1)


def main() -> None:
    """Measure and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", default=tempfile.mkdtemp(prefix="harnesslab-experiments-"))
    os.environ.update(HARNESSLAB_HOME=parser.parse_args().home, DJANGO_SETTINGS_MODULE="harnesslab.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from harnesslab.accounts.models import User
    from harnesslab.actions.progress import follow_up
    from harnesslab.store.models import Rollout

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    project, ids = fill()
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get_or_create(username="benchmark", role="admin")[0])

    def get(address: str) -> Callable[[], object]:
        def ask() -> None:
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.status_code)

        return ask

    columns = ("pk", "experiment_id", "case_id", "trial", "outcome")
    bare = milliseconds(lambda: list(Rollout.objects.filter(project=project).values_list(*columns)))
    figures: dict[str, object] = {"experiments": len(ids), "cases": CASES, "one bare query, ms": bare}
    for name, address in {
        "story": f"/projects/{project}/",
        "experiment": f"/experiments/{ids[-1]}/",
        "experiment, all columns": f"/experiments/{ids[-1]}/?columns=all",
        "compare 8": "/experiments/compare/?" + "&".join(f"e={each}" for each in ids[:8]),
        "efficiency of 8": "/efficiency/?" + "&".join(f"e={each}" for each in ids[:8]),
        "list": "/experiments/",
        "grid": f"/experiments/grid/?project={project}",
    }.items():
        took = milliseconds(get(address))
        figures[name] = {"ms": took, "of the bare query": round(took / bare, 1)}
    figures["what the sweeper asks every 2 s, ms"] = milliseconds(follow_up)
    figures["load1"] = round(os.getloadavg()[0], 1)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
