"""`harnesslab record`: a person's agent in their own shell, with its exit code, signals and terminal left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rig import ROOT, Program, environ
from tests.runtime.driver.rig import model
from tests.runtime.engines.loopback import raw_server, response
from tests.runtime.gateway.rig import answer

TINY = str(ROOT / "tests/runtime/gateway/tiny_agent.py")
KEY = "sk-a-real-key-of-a-person"
SHOW = """
import django; django.setup()
import json
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import to_json
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
rollout = get_rollout(1)
reader = StoredTraceReader(rollout)
seals.verify(reader.trace(), reader.seals())
row = {name: getattr(rollout, name) for name in ("outcome", "grade", "missing", "origin", "model", "engine", "steps")}
print(json.dumps({**row, "facts": facts_of(rollout), "events": [to_json(event) for event in reader.trace().events]}))
"""


def record(home: Path, address: str, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    lab = [sys.executable, "-m", "harnesslab.cli.main", "record", "--upstream", address, "--model", "m"]
    env = environ(home, OPENAI_API_KEY=KEY, **changes)
    return subprocess.run([*lab, "--", *command], env=env, capture_output=True, text=True, cwd=home.parent)


def stored(home: Path) -> Any:
    import json

    done = subprocess.run([sys.executable, "-c", SHOW], env=environ(home), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_an_agent_is_recorded_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with model(answer("I look", "echo hi", number=1), answer("done", number=2)) as served:
        done = record(home, served.address, sys.executable, TINY, "anthropic+", "say hi")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "outside any sandbox" in done.stderr
    assert "rollout 1;" in done.stderr
    assert served.bodies[0] == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "say hi"}],
        "max_tokens": 64,
        "tools": served.bodies[0]["tools"],
    }
    kept = stored(home)
    assert (kept["outcome"], kept["grade"], kept["origin"], kept["steps"]) == ("unknown", "view-only", "live", 2)
    assert "no worker can run again" in kept["missing"]
    kinds = [event["kind"] for event in kept["events"]]
    assert kinds == ["rollout_started", "model_call", "tool_call", "model_call", "harness_action", "rollout_ended"]
    assert kept["events"][1]["settings"] == {"max_tokens": 64}


def test_the_real_key_reaches_the_upstream_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code = "import os; print(sorted(value for name, value in os.environ.items() if name.endswith('_API_KEY')))"
    heads: list[bytes] = []
    with model("x") as served:

        def noted(connection: Any, request: bytes) -> None:
            heads.append(request)
            served.speak(connection, request)

        with raw_server(noted) as address:
            done = record(home, address, sys.executable, "-c", code)
            assert done.stdout == "['harnesslab', 'harnesslab']\n"
            done = record(home, address, sys.executable, TINY, "chat", "x")
    assert done.returncode == 0, done.stderr
    data = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert any(KEY.encode() in head for head in heads)
    assert KEY.encode() not in data


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_the_exit_code_is_the_commands(tmp_path: Path, code: str, expected: int) -> None:
    with model("x") as served:
        done = record(tmp_path / "home", served.address, sys.executable, "-c", code)
    assert done.returncode == expected
    kept = stored(tmp_path / "home")
    assert kept["facts"]["agent"] == {"exit_code": expected}
    assert kept["outcome"] == ("unknown" if expected == 7 else "interrupted")


def test_an_engine_that_fails_is_told_and_recorded_once(tmp_path: Path) -> None:
    with model(response(b"{}", "503 Service Unavailable")) as served:
        done = record(tmp_path / "home", served.address, sys.executable, TINY, "chat", "x")
    assert done.returncode == 3
    assert "refused 503" in done.stdout
    kept = stored(tmp_path / "home")
    assert (kept["outcome"], [event["kind"] for event in kept["events"]].count("model_call")) == ("infra_error", 1)


def test_a_command_that_is_not_there_and_contradictions_are_said(tmp_path: Path) -> None:
    with model("x") as served:
        done = record(tmp_path / "home", served.address, "no-such-program")
    assert done.returncode == 1
    assert "no-such-program: can't be started" in done.stderr
    assert "Traceback" not in done.stderr
    assert stored(tmp_path / "home")["outcome"] == "infra_error"


@pytest.mark.serial
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_the_commands_to_answer(tmp_path: Path, number: int) -> None:
    code = (
        "import signal, sys, time\n"
        "def caught(*_): print('caught', flush=True); sys.exit(5)\n"
        "for n in (signal.SIGTERM, signal.SIGINT): signal.signal(n, caught)\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    with model("x") as served:
        lab = [sys.executable, "-m", "harnesslab.cli.main", "record", "--upstream", served.address, "--model", "m"]
        program = Program([*lab, "--", sys.executable, "-c", code], environ(tmp_path / "home"), tmp_path / "log")
        program.wait_for("ready")
        if number == signal.SIGINT:
            os.killpg(program.process.pid, number)  # as a terminal does
        else:
            program.send(number)
        assert program.process.wait(30) == 5
    assert "caught" in program.printed
    assert stored(tmp_path / "home")["facts"]["agent"] == {"exit_code": 5}


SWEEP = """
import django; django.setup()
from datetime import timedelta
from django.utils import timezone
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.reruns import job_specs
from harnesslab.store.models import Job
Job.objects.filter(state="running").update(lease_until=timezone.now() - timedelta(seconds=1))
assert jobs.sweep() == 1 and Job.objects.get(kind="record").state == "failed"
assert job_specs.interrupt_abandoned() == 1
"""
"""What the sweeper does once the lease of the killed command has run out."""


@pytest.mark.serial
def test_a_killed_recording_leaves_a_readable_prefix(tmp_path: Path) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, {TINY!r}, 'chat', 'x'])\n"
    code += "print('ready', flush=True); input()"
    with model("fine") as served:
        lab = [sys.executable, "-m", "harnesslab.cli.main", "record", "--upstream", served.address, "--model", "m"]
        program = Program([*lab, "--", sys.executable, "-c", code], environ(tmp_path / "home"), tmp_path / "log")
        program.wait_for("ready")
        program.kill()
    whole = "seals.verify(reader.trace(), reader.seals())"
    script = SHOW.replace(whole, "assert seals.seals(reader.trace()) == list(reader.seals())")
    env = environ(tmp_path / "home")
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert '"kind": "model_call"' in done.stdout, done.stderr
    subprocess.run([sys.executable, "-c", SWEEP], env=env, check=True)
    assert stored(tmp_path / "home")["outcome"] == "interrupted"
