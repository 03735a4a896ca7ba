"""A project to train whose model does what the harness's rules tell it: a real server, harness, sandbox and git."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harnesslab.actions import progress
from harnesslab.actions.engines import registration as engines
from harnesslab.actions.jobs import lifecycle as jobs
from harnesslab.actions.projects.bindings import bind
from harnesslab.actions.projects.panels import store_panel
from harnesslab.core.measuring.experiments import Binding, MeasuringPlan
from harnesslab.core.running.cases import Budgets, CaseDefinition, Verifier
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.core.running.recipe import HarnessSource
from harnesslab.core.training.training import Proposer, ProposerKind, TrainingPlan
from harnesslab.requests.engines import EngineRequest
from harnesslab.store.models import Job, JobState, PanelRevision, Project
from tests.runtime.driver.rig import HEAD
from tests.runtime.engines.loopback import raw_server, response
from tests.runtime.training.repositories import run_git
from workers.tasks.job_runs import JobRun
from workers.tasks.jobs import KINDS

ENGINE = "rules"
HARNESS = (
    HEAD
    + """
import json, pathlib
RULES = json.loads(pathlib.Path(__file__).with_name("rules.json").read_text())
task = episode.start["instruction"]
messages = [{"role": "user", "content": task + " => " + RULES.get(task, "true")}]
try:
    episode.run("ls")
    for _ in range(episode.start["budgets"]["steps"]):
        if RULES.get("guard") == task:
            episode.action("guard", mechanism="guard")
        command = episode.model(messages)["text"]
        if episode.run(command)["exit_code"] == 0:
            episode.end()
            break
        messages.append({"role": "assistant", "content": command})
    else:
        episode.end("gave_up")
except Stopped:
    pass
"""
)
"""Asks with the rule for its task; the model answers with the rule's command."""


class Obedient:
    """Answers with what follows the arrow; `slow` seconds are slept by the command itself, never by the server."""

    def speak(self, connection: Any, request: bytes) -> None:
        """Answer one request."""
        body = request.partition(b"\r\n\r\n")[2]
        if not body:
            connection.sendall(response(b'{"object": "list", "data": [{"id": "m"}]}'))
            return
        command = json.loads(body)["messages"][0]["content"].partition(" => ")[2]
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": command}}
        usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
        answer = {"id": "chatcmpl-0", "model": "m", "choices": [choice], "usage": usage}
        connection.sendall(response(json.dumps(answer).encode()))


@contextlib.contextmanager
def engine(ceiling: int = 1) -> Iterator[str]:
    """Serve the obedient model and register it."""
    with raw_server(Obedient().speak) as address:
        engines.register(EngineRequest(name=ENGINE, kind="openai", address=address, model="m", ceiling=ceiling))
        yield address


def case(name: str, setup: tuple[str, ...] = (), **tests: str) -> CaseDefinition:
    """Return a case that is solved where a file of its name is there."""
    budgets = Budgets(steps=2, wall=60.0, command=10.0, verify=5.0, output=20)
    return CaseDefinition(
        name, name, setup=setup, verifier=Verifier(tests or {"made": f"[ -e {name} ]"}), budgets=budgets
    )


CASES = (case("a"), case("b"), case("c"))
FIRST = {"a": "touch a", "between": "", "them": "", "lines": "", "that": "", "stay": ""}
"""The rules at first: they solve one case."""


def project(folder: Path, *cases: CaseDefinition, rules: dict[str, str] | None = None) -> tuple[Project, PanelRevision]:
    """Bind a project to a repository whose harness has some rules."""
    place = folder / "harness"
    place.mkdir(parents=True)
    run_git(place, "init", "-q", "--initial-branch=main")
    (place / "harness.py").write_text(HARNESS)
    write_rules(place, rules or FIRST)
    run_git(place, "add", ".")
    run_git(place, "commit", "-qm", "one")
    row = bind("training", Binding(HarnessSource("rules", str(place)), surface=("*.py", "rules.json")))
    return row, store_panel("training", "letters", PanelDefinition(cases or CASES))


def place_of(folder: Path) -> Path:
    """Return the repository."""
    return folder / "harness"


def write_rules(place: Path, rules: dict[str, str]) -> None:
    """Write the rules, one a line, so that patches of different ones don't touch."""
    (place / "rules.json").write_text(json.dumps(rules, indent=1) + "\n")


def queue(folder: Path, *changes: dict[str, str] | str) -> Proposer:
    """Return a patch queue: each change is what it makes of the first rules, or a patch as it is."""
    place, patches = place_of(folder), folder / "patches"
    patches.mkdir(exist_ok=True)
    for number, change in enumerate(changes):
        text = change
        if isinstance(change, dict):
            write_rules(place, {**FIRST, **change})
            text = f"mechanism: change {number}\nfires: guard\n\n{run_git(place, 'diff')}\n"
            run_git(place, "checkout", "-q", ".")
        (patches / f"{number:02}.patch").write_text(str(text))
    return Proposer(ProposerKind.PATCHES, folder=str(patches))


def plan(proposer: Proposer, iterations: int, **fields: Any) -> TrainingPlan:
    """Return a training's plan at one trial a case."""
    return TrainingPlan(MeasuringPlan(ENGINE), proposer, iterations, **fields)


def drain(most: int = 1000) -> int:
    """Do the waiting jobs as a worker does, in this process; returns how many were done."""
    for done in range(most):
        waiting = Job.objects.filter(state=JobState.QUEUED).order_by("pk").first()
        if waiting is None:
            return done
        work(waiting)
        progress.after(waiting.group)
    return most


def work(waiting: Job) -> None:
    """Do a job, without what follows its end."""
    claimed = jobs.claim(waiting.pk)
    assert claimed is not None
    job, token = claimed
    try:
        result = KINDS[job.kind](JobRun(job.pk, job.payload, lambda *_: True, lambda: False))
    except Exception as error:  # noqa: BLE001 - as the worker does
        jobs.fail(job.pk, token, str(error))
    else:
        jobs.finish(job.pk, token, result)
