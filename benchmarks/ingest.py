"""What importing costs, and how large it is stored, on SQLite or the database named by --database-url.

    .venv/bin/python benchmarks/ingest.py GENERATOR.py [--runs 100] [--steps 30] [--database-url URL --server-pid PID]

CPU is user and system time of the whole `harnesslab import`, start of Python included; with --server-pid also what
the database server's processes used meanwhile. The database must be empty and may be written to.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workload import write

ROOT = Path(__file__).resolve().parent.parent
HZ = os.sysconf("SC_CLK_TCK")


def server_cpu(root: int | None) -> float:
    """Return the CPU seconds of a process and its living and reaped children."""
    if root is None:
        return 0.0
    total = 0
    for place in Path("/proc").iterdir():
        try:
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split() if place.name.isdigit() else []
        except OSError:
            continue
        if fields and (int(place.name) == root or int(fields[1]) == root):
            total += sum(int(value) for value in (fields[11:15] if int(place.name) == root else fields[11:13]))
    return total / HZ


def command(environment: dict[str, str], *arguments: str) -> str:
    """Run a command of the project and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def stored_bytes(environment: dict[str, str], home: Path) -> int:
    """Return the size of the database, indexes included, the write-ahead log merged."""
    script = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "with connection.cursor() as cursor:\n"
        "    if connection.vendor == 'sqlite':\n"
        "        cursor.execute('PRAGMA wal_checkpoint(TRUNCATE)'); print(0)\n"
        "    else:\n"
        "        cursor.execute('CHECKPOINT')\n"
        '        cursor.execute("SELECT sum(pg_total_relation_size(oid)) FROM pg_class "\n'
        "                       \"WHERE relkind = 'r' AND relname LIKE 'store%'\")\n"
        "        print(cursor.fetchone()[0])\n"
    )
    printed = int(command(environment, "-c", script).strip() or 0)
    return printed or (home / "harnesslab.sqlite3").stat().st_size


def main() -> None:
    """Measure once and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("generator", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--database-url", default="")
    parser.add_argument("--server-pid", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        sizes = write(given.generator, home / "workload.jsonl", given.runs, given.steps)
        environment = {
            **os.environ,
            "HARNESSLAB_HOME": folder,
            "DATABASE_URL": given.database_url,
            "DJANGO_SETTINGS_MODULE": "harnesslab.settings",
        }
        command(environment, "manage.py", "migrate", "-v0")
        empty = stored_bytes(environment, home)
        before, server, clock = resource.getrusage(resource.RUSAGE_CHILDREN), server_cpu(given.server_pid), time.time()
        command(environment, "-m", "harnesslab.cli.main", "import", str(home / "workload.jsonl"))
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.time() - clock
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        cpu += server_cpu(given.server_pid) - server
        stored = stored_bytes(environment, home)
        figures = {
            "database": "postgresql" if given.database_url else "sqlite",
            "spans": sizes["spans"],
            "wall_s": round(wall, 2),
            "cpu_ms_per_span": round(1000 * cpu / sizes["spans"], 3),
            "stored_over_once": round(stored / sizes["once_bytes"], 3),
            "empty_database_bytes": empty,
            "stored_bytes": stored,
            "load1": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
