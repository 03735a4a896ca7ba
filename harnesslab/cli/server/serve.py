"""`harnesslab serve`: the web server, the workers and the sweeper under one supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

import click
from django.conf import settings
from django.db import connections

from harnesslab.actions.accounts.first_admin import FirstAdmin
from harnesslab.cli.server.preparation import login_line, prepared
from harnesslab.cli.server.supervisor import Program, Supervisor
from harnesslab.config import ADDRESS, Config
from harnesslab.core.errors import Conflict

PORT = 8765
TRIED_PORTS = 50
WORKER_OPTIONS = [
    "--pool=solo",
    "--concurrency=1",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
    "--loglevel=WARNING",
]
"""One job at a time in the worker's own process, which a `kill` then ends for sure."""
_printing = threading.Lock()


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, help=f"Port; without it {PORT}, or the next one that is free.")
@click.option(
    "--workers", type=click.IntRange(0, 64), default=1, show_default=True, help="Processes that run rollouts."
)
@click.option("--demo", is_flag=True, help="Load the demonstration data where there is no rollout yet.")
def serve(host: str, port: int | None, workers: int, *, demo: bool) -> None:
    """Start the web server, the workers and the engine host; Ctrl-C stops all of it."""
    config = settings.CONFIG
    lock = _lock(config.home)
    listener = _listen(host, port)
    address = _address(listener, host)
    place = config.home / ADDRESS
    place.write_text(address)
    admin = prepared(lambda line: say("serve", line), demo=demo)
    _empty_broker(config)
    connections.close_all()
    supervisor = Supervisor(_programs(listener, workers, config.home), _environ(config.home), say)
    supervisor.run(lambda: answers(address), lambda: _tell_ready(address, admin, config.home))
    listener.close()
    place.unlink(missing_ok=True)
    lock.close()
    say("serve", "stopped")


def say(name: str, line: str) -> None:
    """Print a line of a process under its name; a reader that went away must not stop the server."""
    with _printing, contextlib.suppress(BrokenPipeError):
        click.echo(f"{name:10} | {line}")


def _programs(listener: socket.socket, workers: int, home: Path) -> list[Program]:
    python = sys.executable
    # one process with threads: SQLite has one writer anyway; the socket is ours, so a restart refuses no one
    web = [python, "-m", "gunicorn", "harnesslab.wsgi:application", "--bind", f"fd://{listener.fileno()}"]
    web += ["--worker-class", "gthread", "--workers", "1", "--threads", "8", "--timeout", "120"]
    web += ["--graceful-timeout", "2", "--no-control-socket"]
    worker = [python, "-m", "celery", "--quiet", "--app", "workers.app", "worker", *WORKER_OPTIONS]
    # imports and probes have a worker of their own, so that no rollout of many minutes holds them up
    jobs = [Program("worker", [*worker, "--queues=cpu,control", "--hostname", "cpu@%h"])]
    jobs += [
        Program(f"rollouts {n}", [*worker, "--queues=gpu", "--hostname", f"gpu{n}@%h"]) for n in range(1, workers + 1)
    ]
    sweeper = Program("sweeper", [python, "-m", "workers.sweeper"])
    engine = Program("engine", [python, "-m", "harnesslab.runtime.engines.host", "--home", str(home)])
    return [Program("web", web, (listener.fileno(),)), sweeper, engine, *jobs]


def _environ(home: Path) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "HARNESSLAB_HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def _lock(home: Path) -> IO[str]:
    """Hold the home folder; raises `Conflict` where another server holds it."""
    handle = (home / "serve.lock").open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Conflict("a server already runs on this folder", where=str(home), hint="stop it first") from None
    return handle


def _listen(host: str, port: int | None) -> socket.socket:
    """Listen on the port, or on the first free one from the default."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [port] if port is not None else range(PORT, PORT + TRIED_PORTS)
    for number in tried:
        try:
            return socket.create_server((host, number), family=family, backlog=256)
        except OSError as error:
            reason = error.strerror or str(error)
    raise Conflict(f"can't listen: {reason}", where=f"{host}:{tried[0]}", hint="give another --port or --host")


def _address(listener: socket.socket, host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{listener.getsockname()[1]}/"


def answers(address: str) -> bool:
    """Say whether a server answers at an address."""
    try:
        with urllib.request.urlopen(f"{address}health", timeout=1) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _empty_broker(config: Config) -> None:
    """Forget old messages of the embedded broker: the rows say what waits, and the sweeper wakes workers for it."""
    if not config.redis_url:
        queue = config.home / "broker" / "queue"
        shutil.rmtree(queue, ignore_errors=True)
        queue.mkdir(parents=True)


def _tell_ready(address: str, admin: FirstAdmin, home: Path) -> None:
    say("serve", f"data in {home}")
    say("serve", login_line(admin))
    say("serve", f"ready at {address}")
