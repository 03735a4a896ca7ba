"""The programs of the compose file, started as it says outside of Docker: each comes up and does its part."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml

from tests.rig import Program, environ, native_lines, wait_until

pytestmark = pytest.mark.serial

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("prepare", "web", "worker-cpu", "worker-gpu", "engine", "control")
ADDRESS = os.environ.get("DATABASE_URL", "")
DATABASE = "harnesslab_compose_trial"
ORDER = """
import sys, django
django.setup()
from harnesslab.actions.engines.registration import EMBEDDED_NAME
from harnesslab.actions.demonstration import recipe
from harnesslab.actions.jobs.lifecycle import enqueue
from harnesslab.actions.reruns.job_specs import order
from harnesslab.core.running.cases import Budgets, CaseDefinition
from harnesslab.queries.reruns.job_specs import Belonging
enqueue("import", {"path": sys.argv[1], "name": "trial.jsonl", "project": ""})
case = CaseDefinition("one step", "Create a file named a.", budgets=Budgets(steps=1, output=8))
order(recipe(case), Belonging("trial"))
"""


def test_every_service_of_ours_says_what_it_runs_or_runs_the_image_s_own_command() -> None:
    assert {name for name, service in SERVICES.items() if service.get("image") == "harnesslab"} == set(OURS)
    assert [name for name in OURS if "command" not in SERVICES[name]] == ["web"]


def test_every_queue_has_a_worker() -> None:
    served = " ".join(" ".join(SERVICES[name].get("command", [])) for name in OURS)
    for queue in ("cpu", "control", "gpu"):
        assert re.search(rf"--queues=(\w+,)*{queue}\b", served)


def test_sglang_is_deterministic_bounded_and_seeded() -> None:
    command = " ".join(SERVICES["sglang"]["command"])
    for flag in ("--enable-deterministic-inference", "--max-running-requests=", "--random-seed="):
        assert flag in command
    assert SERVICES["sglang"]["profiles"] == ["gpu"]


def command_of(name: str, port: int) -> list[str]:
    """Return a service's command for this machine: its Python, its folder, a free port."""
    command = SERVICES[name].get("command") or _image_command()
    changes = {"python": sys.executable, "/data": "@home", "0.0.0.0:8000": f"127.0.0.1:{port}"}
    return [changes.get(word, word) for word in command]


def _image_command() -> list[str]:
    text = (ROOT / "Dockerfile").read_text().split("FROM python:3.12-slim AS mlflow")[0]
    found = re.search(r"^CMD (\[.*?\])$", text.replace("\\\n", ""), re.MULTILINE | re.DOTALL)
    assert found is not None
    command: list[str] = json.loads(found.group(1))
    return command


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Services:
    """The services, each a process of its own."""

    def __init__(self, folder: Path, address: str, stack: ExitStack) -> None:
        self.home = folder / "home"
        self.port = free_port()
        self.env = environ(self.home, DATABASE_URL=address, REDIS_URL=os.environ["REDIS_URL"])
        self._folder, self._stack = folder, stack

    def start(self, name: str) -> Program:
        """Start one service."""
        command = [str(self.home) if word == "@home" else word for word in command_of(name, self.port)]
        program = Program(command, self.env, self._folder / f"{name}.log")
        self._stack.callback(program.close)
        return program

    def python(self, script: str, *arguments: str) -> str:
        """Run a script on the services' database."""
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


if ADDRESS.startswith("postgres"):  # the stage with services

    @pytest.fixture
    def services(tmp_path: Path) -> Iterator[Services]:
        """A database of this test alone, prepared as the compose file does."""
        with psycopg.connect(ADDRESS, autocommit=True) as owner, ExitStack() as stack:
            owner.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            owner.execute(f"CREATE DATABASE {DATABASE}")
            stack.callback(owner.execute, f"DROP DATABASE {DATABASE} WITH (FORCE)")
            address = urlsplit(ADDRESS)._replace(path=f"/{DATABASE}").geturl()
            made = Services(tmp_path, address, stack)
            prepare = made.start("prepare")
            assert prepare.process.wait(120) == 0, prepare.printed
            yield made

    def test_the_services_come_up_answer_and_do_the_jobs_of_every_queue(services: Services, tmp_path: Path) -> None:
        programs = {name: services.start(name) for name in OURS if name != "prepare"}
        check = SERVICES["web"]["healthcheck"]["test"]
        healthy = [word.replace(":8000/", f":{services.port}/") for word in check[1:]]
        assert healthy[0] == "python"

        def answers() -> bool:
            return subprocess.run([sys.executable, *healthy[1:]], capture_output=True, check=False).returncode == 0

        wait_until(answers, 60, "the health check of web to pass")
        place = tmp_path / "spooled" / "trial.jsonl"
        place.parent.mkdir()
        place.write_text(native_lines(3))
        services.python(ORDER, str(place))
        script = (
            "import django; django.setup()\n"
            "from harnesslab.store.models import Job\n"
            "print(*Job.objects.values_list('kind', 'state'), sep='\\n')"
        )
        deadline = time.monotonic() + 240
        wanted = ("('import', 'done')", "('probe', 'done')", "('rollout', 'done')")
        while any(word not in (states := services.python(script)) for word in wanted):
            assert time.monotonic() < deadline, (states, {name: item.printed[-500:] for name, item in programs.items()})
            assert [name for name, item in programs.items() if item.process.poll() is not None] == []
            time.sleep(1)
        with urllib.request.urlopen(f"http://127.0.0.1:{services.port}/health", timeout=5) as answer:
            assert json.load(answer)["status"] == "ok"
