"""Server time of the pages over 100,000 rollouts and two traces of 10,000 steps, and memory of the web process.

    .venv/bin/python benchmarks/pages.py [--home FOLDER]      # FOLDER keeps the data for another run

Times are medians of five requests to Django's own client in this process, after one that is not counted; the first
comparison, which computes and keeps the paths, is named apart. Memory is that of a gunicorn worker after serving.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.test import Client

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROLLOUTS = 100_000
STEPS = 10_000


def fill() -> tuple[int, int]:
    """Store the rollouts and the two long traces, and return the ids of the latter."""
    from harnesslab.actions.rollouts.storing import store_recording
    from harnesslab.store.models import Case, Rollout
    from tests.recordings import recording

    chance = random.Random(3)
    words = [f"w{chance.randrange(5000)}" for _ in range(2000)]
    if not Rollout.objects.filter(case__name="long").exists():
        for trial in range(2):
            commands = [f"command {step}" for step in range(STEPS)]
            results = {step: " ".join(random.Random(step).choices(words, k=150)) for step in range(STEPS)}
            if trial:
                results |= {step: f"other {results[step]}" for step in range(7000, STEPS, 3)}
                commands.insert(8000, "one more")
            store_recording(recording(commands, case="long", trial=trial, results=results), None)
    sample = Rollout.objects.filter(case__name="long").order_by("pk")
    base = {field.attname: getattr(sample[0], field.attname) for field in Rollout._meta.concrete_fields}
    del base["id"]
    missing = ROLLOUTS - Rollout.objects.count()
    cases = [Case.objects.get_or_create(panel_id=sample[0].case.panel_id, name=f"case-{n}")[0].pk for n in range(2000)]
    rows = (
        Rollout(
            **base
            | {
                "case_id": chance.choice(cases),
                "trial": number % 5,
                "outcome": chance.choice(["solved", "failed_verification", "step_cap"]),
                "model": chance.choice(["m-1", "m-2", "m-3"]),
                "steps": chance.randrange(1, 100),
                "output_tokens": chance.randrange(100_000),
                "path": chance.randbytes(16),
                "search": f"tests panel-1 case-{number % 2000} loop m-1",
            }
        )
        for number in range(max(0, missing))
    )
    Rollout.objects.bulk_create(rows, batch_size=2000)
    ids = list(sample.values_list("pk", flat=True))
    return ids[0], ids[1]


def milliseconds(client: Client, address: str) -> dict[str, float]:
    """Return the first and the median further time of a page, and its size."""
    times = []
    size = 0
    for _ in range(6):
        began = time.perf_counter()
        answer = client.get(address)
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, answer.status_code
        size = len(answer.content)
    return {"first": round(times[0], 1), "median": round(statistics.median(times[1:]), 1), "bytes": size}


def web_memory(home: str) -> float:
    """Return the resident MiB of a gunicorn worker after it served the login page."""
    port = 18765
    arguments = ["-m", "gunicorn", "harnesslab.wsgi", "-k", "gthread", "--threads", "8", "-b", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "HARNESSLAB_HOME": home},
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/login").read()
                break
            except OSError:
                time.sleep(0.1)
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        status = Path(f"/proc/{children[0]}/status").read_text()
        return round(int(status.split("VmRSS:")[1].split()[0]) / 1024, 1)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Measure and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", default=tempfile.mkdtemp(prefix="harnesslab-pages-"))
    home = parser.parse_args().home
    os.environ.update(HARNESSLAB_HOME=home, DJANGO_SETTINGS_MODULE="harnesslab.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from harnesslab.accounts.models import User
    from harnesslab.core.contracts.comparators import first_difference
    from harnesslab.core.contracts.contract import RAW
    from harnesslab.queries.rollouts.listing import get_rollout
    from harnesslab.queries.rollouts.trace_readers import StoredTraceReader

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    a, b = fill()
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get_or_create(username="benchmark", role="admin")[0])
    figures: dict[str, object] = {}
    for name, address in {
        "list": "/rollouts/",
        "list, filtered and sorted": "/rollouts/?model=m-2&outcome=solved&sort=most-steps",
        "list, searched": "/rollouts/?q=case-77",
        "list by case": "/rollouts/?by=case",
        "projects": "/",
        "rollout, first step": f"/rollouts/{a}/",
        "rollout, step 9000": f"/rollouts/{a}/?step=9000",
        "comparison": f"/compare/?a={a}&b={b}",
        "comparison, one row": f"/compare/row/?a={a}&b={b}&row=15000",
    }.items():
        figures[name] = milliseconds(client, address)
    times = []
    for _ in range(6):
        began = time.perf_counter()
        first_difference(StoredTraceReader(get_rollout(a)).path(RAW), StoredTraceReader(get_rollout(b)).path(RAW))
        times.append(1000 * (time.perf_counter() - began))
    figures["first divergence of two stored traces"] = round(statistics.median(times), 2)
    figures["web process MiB"] = web_memory(home)
    figures["load1"] = round(os.getloadavg()[0], 1)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
