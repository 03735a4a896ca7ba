"""A lab with data on every page, and sessions that are logged in already."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.browser import rerun_lab
from tests.rig import Lab, native_lines

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

LONG = 1500
"""Steps of the long trials."""
MANY = 130
"""Rollouts of the paging test: more than a page of the list."""
_SEED = f"""
import json
import django; django.setup()
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.rollout import Outcome
from harnesslab.store.models import Experiment, Rollout
from tests.pages.experiments import lineage
from tests.recordings import recording

commands = [f"command {{step}}" for step in range({LONG})]
results = {{}}, {{300: "other", 301: "other", {LONG - 10}: "other"}}
long = [store_recording(recording(commands, case="long", trial=n, results=results[n]), None).pk for n in (0, 1)]
results_of = ((4, Outcome.SOLVED), (6, Outcome.STEP_CAP)), ((3, Outcome.SOLVED), (5, Outcome.SOLVED))
for name, runs in zip(("before", "after"), results_of):
    for case, (steps, outcome) in enumerate(runs):
        timed = recording(commands[:steps], case=f"measured-{{case}}", outcome=outcome, experiment=name, latency=0.5)
        store_recording(timed, None)
payload = {{0: "first line\\n" + "x" * 30_000 + "\\nlast line"}}
ids = {{"long": long, "payload": [store_recording(recording(case="payload", results=payload), None).pk]}}
for case in ("near-tie", "scratch-file"):
    greedy = Rollout.objects.filter(case__name=case, experiment__name="greedy").order_by("trial")
    ids[case] = list(greedy.values_list("pk", flat=True))
ids["experiments"] = [Experiment.objects.get(name=name).pk for name in ("before", "after")]
story = lineage("story")
ids["story"] = [story[0].project_id, *(row.pk for row in story)]
ids["nested"] = list(Rollout.objects.filter(case__name="nested").values_list("pk", flat=True))
print(json.dumps(ids))
"""


def nested_lines() -> str:
    """Return a trace whose first call is retried and whose second step hands over to a sub-agent's sub-agent."""
    asked = [{"role": "user", "content": "Find it."}]
    call = {"kind": "model_call", "model": "m"}
    lines: list[dict[str, object]] = [
        {"rollout": {"schema": "harnesslab.trace/1", "case": "nested", "outcome": "solved"}},
        {**call, "step": 0, "messages": asked, "error": "overloaded"},
        {**call, "step": 0, "attempt": 1, "messages": asked, "text": "I hand over."},
        {**call, "step": 1, "agent": "research", "messages": asked, "text": "I look."},
        {**call, "step": 2, "agent": "research/reader", "messages": asked, "text": "Found."},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@dataclass(frozen=True)
class Filled:
    """A lab with the demonstration and a few recordings; ids by case."""

    lab: Lab
    ids: dict[str, list[int]]

    def pair(self, case: str, **query: str) -> str:
        """Return the address of the comparison of a case's two trials."""
        a, b = self.ids[case]
        return f"/compare/?a={a}&b={b}" + "".join(f"&{name}={value}" for name, value in query.items())

    def rollout(self, case: str, query: str = "") -> str:
        """Return the address of a case's first trial."""
        return f"/rollouts/{self.ids[case][0]}/{query}"


@pytest.fixture(scope="session")
def filled(lab: Lab) -> Filled:
    """The lab with data."""
    lab.run("demo", "--no-training")
    for name, text in (("many.jsonl", native_lines(MANY)), ("nested.jsonl", nested_lines())):
        (lab.home / name).write_text(text)
        lab.run("import", str(lab.home / name))
    done = subprocess.run([sys.executable, "-c", _SEED], env=lab.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Filled(lab, json.loads(done.stdout))


@pytest.fixture(scope="session")
def sessions(browser: Browser, lab: Lab) -> Iterator[dict[str, BrowserContext]]:
    """A session of each role that is logged in and keeps its cached files."""
    found = {}
    for role, password in lab.passwords.items():
        context = browser.new_context(base_url=lab.address, viewport={"width": 1280, "height": 800})
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.goto("/login")
        page.fill("#id_username", role)
        page.fill("#id_password", password)
        page.click("button:has-text('Log in')")
        page.wait_for_url(lambda url: "/login" not in url)
        page.close()
        found[role] = context
    yield found
    for context in found.values():
        context.close()


def _opened(context: BrowserContext) -> Iterator[Page]:
    """Give a page and fail the test where its console shows an error; what it kept is forgotten."""
    said: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    if page.url.startswith("http"):
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
    page.close()
    assert said == []


@pytest.fixture
def open_as_operator(filled: Filled, sessions: dict[str, BrowserContext]) -> Iterator[Page]:
    """A page of an operator over the filled lab."""
    yield from _opened(sessions["operator"])


@pytest.fixture
def open_as_admin(filled: Filled, sessions: dict[str, BrowserContext]) -> Iterator[Page]:
    """A page of an admin over the filled lab."""
    yield from _opened(sessions["admin"])


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rerun_lab.RerunLab]:
    """A lab that really runs, with a few rollouts."""
    made = rerun_lab.filled(tmp_path_factory.mktemp("reruns"))
    yield made
    made.lab.program.close()


@pytest.fixture(scope="session")
def session(browser: Browser, rig: rerun_lab.RerunLab) -> Iterator[BrowserContext]:
    """A session of its operator."""
    context = browser.new_context(base_url=rig.lab.address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/login")
    page.fill("#id_username", "operator")
    page.fill("#id_password", rig.lab.passwords["operator"])
    page.click("button:has-text('Log in')")
    page.wait_for_url(lambda url: "/login" not in url)
    page.close()
    yield context
    context.close()


@pytest.fixture
def tab(session: BrowserContext) -> Iterator[Page]:
    """A page whose console must stay empty."""
    said: list[str] = []
    page = session.new_page()
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    page.close()
    assert said == []
