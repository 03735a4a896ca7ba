"""How long a sandbox takes to its first command, beside a plain process and bare bubblewrap in the same run.

    .venv/bin/python benchmarks/sandbox_start.py [--times 100]

Each round measures all of them, one after the other, so that other work on the machine falls on all.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harnesslab.core.running.ports import Place
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from harnesslab.runtime.sandboxes.layout import bubblewrap, interpreter

BARE = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
BARE += ["--symlink", "usr/lib64", "/lib64", "--unshare-pid", "--unshare-net", "--proc", "/proc", "--dev", "/dev"]


def timed(act: Callable[[], object]) -> float:
    """Return the milliseconds that something takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def sandbox_round() -> dict[str, float]:
    """Measure one sandbox from nothing to closed."""
    began = time.perf_counter()
    sandbox = Bubblewrap().open(Place())
    opened = (time.perf_counter() - began) * 1000
    first = timed(lambda: sandbox.run("true", timeout=10))
    next_one = timed(lambda: sandbox.run("true", timeout=10))
    python = timed(lambda: sandbox.run("python3 -c pass", timeout=10))
    closed = timed(sandbox.close)
    return {
        "sandbox: open to end of first command": opened + first,
        "sandbox: one more command": next_one,
        "sandbox: one more command, Python": python,
        "sandbox: close": closed,
    }


def one_round() -> dict[str, float]:
    """Measure everything once."""
    python, _ = interpreter()
    return {
        "plain process, bash": timed(lambda: subprocess.run(["bash", "-c", "true"], check=True)),
        "plain process, Python": timed(lambda: subprocess.run([python, "-I", "-S", "-c", "pass"], check=True)),
        "bare bubblewrap, bash": timed(lambda: subprocess.run([bubblewrap(), *BARE, "bash", "-c", "true"], check=True)),
        **sandbox_round(),
    }


def main() -> None:
    """Print the 50th and 95th percentile of each, and the ratio to a plain process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    times = parser.parse_args().times
    one_round()
    rounds = [one_round() for _ in range(times)]
    base = statistics.median(one["plain process, bash"] for one in rounds)
    print(f"{times} rounds; milliseconds{'':27} p50     p95   p50 / plain bash")
    for name in rounds[0]:
        values = sorted(one[name] for one in rounds)
        middle, high = statistics.median(values), values[min(len(values) - 1, int(len(values) * 0.95))]
        print(f"{name:40} {middle:9.1f} {high:7.1f} {middle / base:10.1f}")


if __name__ == "__main__":
    main()
