"""A real server under a full queue: from click to first step, and a thousand jobs through a worker that is killed.

    .venv/bin/python benchmarks/full_queue.py [--jobs 1000] [--clicks 10]

Starts `harnesslab serve` on a home of its own with the embedded engine, records one rollout, then asks for live
reruns one by one (the clicks), and for recorded reruns all at once (the jobs). In the middle one worker of
rollouts is ended with `kill -9`. Every attempt must have exactly one rollout that counts.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> None:
    """Serve, measure, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clicks", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harnesslab-queue-") as home:
        os.environ |= {"HARNESSLAB_HOME": home, "DJANGO_SETTINGS_MODULE": "harnesslab.settings"}
        command = [sys.executable, "-m", "harnesslab.cli.main", "serve", "--port", "0"]
        with (Path(home) / "serve.log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
        try:
            _until(lambda: b"ready at" in (Path(home) / "serve.log").read_bytes(), "the server")
            import django

            django.setup()
            measure(chosen.clicks, chosen.jobs, server.pid)
        finally:
            server.terminate()
            server.wait()


def measure(clicks: int, jobs: int, server: int) -> None:
    """Print the figures."""
    parent = _parent()
    waits = [_click(parent) for _ in range(clicks)]
    print(
        f"from request to the first step stored, embedded engine: p50 {statistics.median(waits) * 1000:.0f} ms, "
        f"most {max(waits) * 1000:.0f} ms, of {clicks}"
    )
    _drain(parent, jobs, server)


def _parent() -> int:
    from harnesslab.actions.demonstration import recipe
    from harnesslab.actions.reruns.job_specs import order
    from harnesslab.queries.reruns.job_specs import Belonging
    from harnesslab.runtime.demonstration.shell_cases import SHELL_CASES
    from harnesslab.store.models import Job

    job = order(recipe(SHELL_CASES[1]), Belonging("benchmark"))
    _until(lambda: not Job.objects.filter(state__in=("queued", "running")).exists(), "probes and rollout to end", 300)
    job.refresh_from_db()
    return int(job.result["rollout"])


def _click(parent: int) -> float:
    from harnesslab.actions.reruns.lifecycle import request
    from harnesslab.core.running.rerun import Mode, RerunPlan
    from harnesslab.store.models import Rollout

    began = time.monotonic()
    rerun = request(parent, RerunPlan(mode=Mode.LIVE), user=None)
    _until(lambda: Rollout.objects.filter(rerun=rerun, steps__gte=1).exists(), "the first step")
    waited = time.monotonic() - began
    _ended_group(f"rerun {rerun.pk}")
    return waited


def _drain(parent: int, jobs: int, server: int) -> None:
    from harnesslab.actions.reruns.lifecycle import request
    from harnesslab.core.running.rerun import Mode, RerunPlan
    from harnesslab.store.models import Job, Rollout

    before = Rollout.objects.count()
    began = time.monotonic()
    asked = [request(parent, RerunPlan(mode=Mode.RECORDED), user=None).pk for _ in range(jobs)]
    queued = time.monotonic() - began
    _until(lambda: Rollout.objects.count() - before > jobs // 3, "a third of the jobs", 3600)
    killed = _kill_worker(server)
    _until(lambda: not Job.objects.filter(state__in=("queued", "running")).exists(), "the queue to drain", 3600)
    seconds = time.monotonic() - began
    counted = Counter(
        Rollout.objects.filter(rerun_id__in=asked, head__isnull=False)
        .exclude(outcome="interrupted")
        .values_list("rerun_id", flat=True)
    )
    states = Counter(
        Job.objects.filter(group__in=[f"rerun {pk}" for pk in asked[:900]]).values_list("state", flat=True)
    )
    lost, doubled = sum(pk not in counted for pk in asked), sum(count > 1 for count in counted.values())
    print(
        f"{jobs} recorded reruns queued in {queued:.1f} s and drained in {seconds:.0f} s ({jobs / seconds:.1f}/s), "
        f"worker {killed} killed on the way: {lost} lost, {doubled} doubled, states of the first 900 {dict(states)}"
    )


def _kill_worker(server: int) -> int:
    found = subprocess.run(["pgrep", "-P", str(server), "-f", "queues=gpu"], capture_output=True, text=True, check=True)
    pid = int(found.stdout.split()[0])
    os.kill(pid, signal.SIGKILL)
    return pid


def _ended_group(group: str) -> None:
    from harnesslab.store.models import Job

    _until(lambda: not Job.objects.filter(group=group, state__in=("queued", "running")).exists(), "the job", 300)


def _until(found: object, what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not found():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
