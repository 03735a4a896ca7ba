"""A lab that really runs: a small harness in a repository, short cases, the real engine, sandbox and worker."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.rig import Lab, wait_until
from tests.runtime.driver.rig import HEAD, repository

HARNESS = (
    HEAD
    + """
STYLE = "Answer in a few words."
task = episode.start["instruction"]
messages = [{"role": "system", "content": STYLE}]
said, _, script = task.partition("$ ")
try:
    wish = episode.user(said)
    messages.append({"role": "user", "content": f"{said} {wish or ''}".strip()})
    if script:
        result = episode.run(script)
        output = "timed out" if result["timed_out"] else result["output"]
        messages.append({"role": "user", "content": f"The tool printed: {output}"})
    for _ in range(2):
        text = episode.model(messages)["text"]
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": "Another."})
        episode.run("true")
    episode.end()
except Stopped:
    pass
"""
)
"""Runs the script that its task names before it asks the model twice."""
_SEED = """
import json, sys
import django; django.setup()
from harnesslab.actions.engines.registration import EMBEDDED_NAME, ensure_embedded
from harnesslab.actions.reruns.job_specs import order
from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser
from harnesslab.core.running.recipe import HarnessSource, Recipe, SideEffects
from harnesslab.queries.reruns.job_specs import Belonging

ensure_embedded()
persona = SimulatedUser(persona="You are a person who names a fruit. Answer in one short sentence.")
cases = {
    "plain": ("Name a fruit.", {}, None),
    "unpinned": ("Name a fruit. $ date +%H:%M:%S.%N", {}, None),
    "asked": ("Which fruit do you want?", {}, persona),
    "slow": ("Name a fruit. $ sleep 4", {"command": 20.0}, None),
    "in-time": ("Name a fruit. $ sleep 0.7", {"command": 20.0}, None),
    "late": ("Name a fruit. $ sleep 0.7", {"command": 0.2}, None),
}
jobs = {}
for name, (task, limits, user) in cases.items():
    case = CaseDefinition(name, task, budgets=Budgets(**{"steps": 3, "wall": 90.0, "output": 10, **limits}), user=user)
    recipe = Recipe(
        harness=HarnessSource("small", sys.argv[1], "r1"),
        case=case,
        engine=EMBEDDED_NAME,
        settings={"temperature": 0.9},
        root_seed="1",
        tools={"run": SideEffects.SANDBOXED},
        pins=() if name == "unpinned" else None,
    )
    jobs[name] = order(recipe, Belonging("browser", "small")).pk
print(json.dumps(jobs))
"""
_MADE = """
import json
import django; django.setup()
from harnesslab.store.models import Job
print(json.dumps({job.pk: [job.state, job.message, job.result.get("rollout")] for job in Job.objects.all()}))
"""


@dataclass(frozen=True)
class RerunLab:
    """The lab, and its rollouts by case."""

    lab: Lab
    rollouts: dict[str, int]

    def address(self, case: str, rest: str = "") -> str:
        """Return the address of a case's rollout."""
        return f"/rollouts/{self.rollouts[case]}/{rest}"


def python(lab: Lab, code: str, *arguments: str) -> object:
    """Run code over a lab's home and return the JSON that it prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=lab.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def filled(folder: Path) -> RerunLab:
    """Start a lab, order its rollouts and wait until they have ended."""
    code = repository(folder / "small", HARNESS)
    (code / "harness.py").write_text(HARNESS.replace("Answer in a few words.", "Answer in one word."))
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["add", "."], [*identity, "commit", "-qm", "two"], ["tag", "r2"]):
        subprocess.run(["git", *arguments], cwd=code, check=True)
    lab = Lab(folder / "lab")
    lab.add_users()
    jobs = python(lab, _SEED, str(code))
    assert isinstance(jobs, dict)

    def made() -> dict[str, int]:
        states = python(lab, _MADE)
        assert isinstance(states, dict)
        ended = {name: states[str(job)] for name, job in jobs.items()}
        assert not [row for row in ended.values() if row[0] == "failed"], ended
        return {name: row[2] for name, row in ended.items()} if all(row[2] for row in ended.values()) else {}

    return RerunLab(lab, wait_until(made, 100, "the rollouts have ended"))
