"""mini-swe-agent as it comes, brought up by script/test-agent: it runs, and every step of it is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harnesslab.core.running.recipe import HarnessKind, HarnessSource, Recipe
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import HarnessAction, ModelCall
from harnesslab.core.trace.trace import Trace
from harnesslab.runtime.driver.run import Begun, RolloutParts, run
from harnesslab.runtime.engines.catalogue import engine
from harnesslab.runtime.engines.hosting import hosted
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from harnesslab.runtime.sandboxes.pins import CLOCK, NAMES
from tests.rig import environ
from tests.runtime.driver.rig import Memory, Rollout, case

AGENT = Path(os.environ["HARNESSLAB_TEST_AGENT"])
SETTINGS = Path(__file__).with_name("mini_swe_agent.yaml")
STEPS = 4
QUIET = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]


def command(python: str, settings: str, task: str, trajectory: str) -> list[str]:
    """Return the agent's command line."""
    model = ["-m", "openai/smollm2", "--model-class", "litellm_textbased"]
    configured = ["-c", "mini_textbased.yaml", "-c", settings, "-c", f"agent.step_limit={STEPS}"]
    begun = [python, "-m", "minisweagent.run.mini", "-y", "--exit-immediately"]
    return [*begun, *model, *configured, "-t", task, "-o", trajectory]


def in_sandbox(folder: Path, plan: RerunPlan | None = None, trace: Trace | None = None) -> Rollout:
    """Run it as a command harness in a sandbox without network."""
    python = (AGENT / "bin/python").resolve()
    words = command(f"/opt/python/bin/{python.name}", "/opt/settings.yaml", "{instruction}", "/tmp/trajectory.json")
    # an environment's Python is a link to one that the sandbox doesn't show, so that one is shown beside it
    readable = {"/opt/python": str(python.parents[1]), "/opt/agent": str(AGENT), "/opt/settings.yaml": str(SETTINGS)}
    packages = next((AGENT / "lib").glob("python3*")).name
    source = HarnessSource(
        "mini-swe-agent",
        "",
        "2.4.6",
        HarnessKind.COMMAND,
        command=tuple(words),
        environ={
            **QUIET,
            "PYTHONPATH": f"/opt/agent/lib/{packages}/site-packages",
            "LD_LIBRARY_PATH": "/opt/python/lib",
        },
        readable=readable,
    )
    task = case("List the files.", {"notes.txt": "a\n"}, {"there": "[ -f notes.txt ]"}, steps=10, wall=200.0)
    client = engine("embedded", "", "", {}, folder)
    # with the clock pinned beside the rest it waits 40 s somewhere, see docs/harnesses.md
    pins = tuple(name for name in NAMES if name != CLOCK)
    recipe = Recipe(source, task, "e", settings={"temperature": 0}, pins=pins)
    memory = Memory()

    def begin(_: Begun) -> Memory:
        return memory

    parts = RolloutParts(recipe, client, Bubblewrap(), folder / "cache", plan, trace, model="smollm2")
    done = run(parts, begin, lambda: False, lambda _: None)
    client.close()
    return Rollout(done, memory.builder.close(done.result.outcome), memory.flushed)


def test_in_the_sandbox_every_step_is_recorded_and_can_be_served_again(tmp_path: Path) -> None:
    with hosted(tmp_path):
        rollout = in_sandbox(tmp_path)
        calls = rollout.of(ModelCall)
        ended = rollout.of(HarnessAction)[-1]
        print(f"\nin the sandbox: {rollout.done.result.outcome}, {len(calls)} calls, {ended.latency:.0f} s")  # noqa: T201
        assert rollout.done.result.outcome is Outcome.SOLVED, ended.extra
        assert [event.step for event in calls] == list(range(STEPS))
        assert all(event.text.startswith("```mswea_bash_command\n") for event in calls)
        assert all(event.token_ids and event.logprobs and event.prompt_token_ids for event in calls)
        again = in_sandbox(tmp_path, RerunPlan(mode=Mode.HYBRID, switches={"tool": Switch.LIVE}), rollout.trace)
    assert again.counts["requests"] == 0
    assert [event.text for event in again.of(ModelCall)] == [event.text for event in calls]


def test_under_record_every_step_is_recorded(tmp_path: Path) -> None:
    words = command(str(AGENT / "bin/python"), str(SETTINGS), "List the files.", str(tmp_path / "trajectory.json"))
    (tmp_path / "here").mkdir()
    env = {**environ(tmp_path / "home"), **QUIET, "HOME": str(tmp_path), "OPENAI_API_KEY": "a-real-key"}
    lab = [sys.executable, "-m", "harnesslab.cli.main"]
    done = subprocess.run(
        [*lab, "record", "--case", "mini", "--", *words], env=env, cwd=tmp_path / "here", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rollout 1;" in done.stderr
    subprocess.run([*lab, "export", "1", "--bundle", str(tmp_path / "out.zip")], env=env, check=True)
    trajectory = json.loads((tmp_path / "trajectory.json").read_text())
    spoken = [message for message in trajectory["messages"] if message["role"] == "assistant"]
    assert len(spoken) == STEPS
    stored = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("harnesslab.sqlite3*"))
    assert b"a-real-key" not in stored
