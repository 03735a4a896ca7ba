"""An experiment and a training in a browser, over a real worker, engine and sandbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.rerun_lab import RerunLab

pytestmark = pytest.mark.browser
LONG = 90_000
"""Milliseconds in which a few short rollouts end on a loaded machine."""
PANEL = 'name = "fruit"\n[budgets]\nsteps = 3\nwall = 90\noutput = 10\n'


@pytest.fixture(scope="module")
def project(rig: RerunLab, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Bind a project to the lab's small harness, with a panel of two cases: one that is solved, one that is not."""
    folder = tmp_path_factory.mktemp("panel")
    (folder / "panel.toml").write_text(PANEL)
    for name, test in (("easy", "true"), ("hard", "false")):
        (folder / name).mkdir()
        (folder / name / "instruction.md").write_text("Name a fruit.\n")
        (folder / name / "case.toml").write_text(f'[verifier.tests]\nend = "{test}"\n')
    repository = rig.lab.home.parents[1] / "small"
    branch = (repository / ".git" / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
    rig.lab.run("project-bind", "fruits", "--repository", str(repository), "--branch", branch)
    rig.lab.run("panel-add", str(folder), "--project", "fruits")
    return branch


def test_an_experiment_is_asked_for_on_its_form_and_watched_to_its_end(tab: Page, project: str) -> None:
    tab.goto("/experiments/")
    tab.get_by_role("link", name=re.compile("^new experiment$", re.IGNORECASE)).click()
    tab.get_by_role("link", name="fruits").click()
    tab.get_by_label("Harness revision").fill("r1")
    expect(tab.locator("#preview")).to_contain_text("2 cases × 1 trial = 2 rollouts")
    tab.locator(".pick > summary").click()
    tab.get_by_label("easy").check()
    expect(tab.locator("#preview")).to_contain_text("1 case × 1 trial = 1 rollout")
    expect(tab.get_by_label("easy")).to_be_focused()
    expect(tab).to_have_url(re.compile("case=easy"))
    tab.get_by_label("easy").uncheck()
    tab.get_by_role("button", name="Run 2 rollouts").dblclick()
    expect(tab).to_have_url(re.compile(r"/experiments/\d+/progress/$"))
    said = "Measured: all 2 rollouts have ended, 1 of them solved."
    expect(tab.locator(".standing")).to_contain_text(said, timeout=LONG)
    expect(tab.locator("tbody tr").first).to_contain_text("solved")
    expect(tab.locator("tbody tr").last).to_contain_text("failed verification")
    listed = tab.request.get("/api/v1/experiments?project=fruits&kind=eval").json()["rows"]
    assert [(row["solved"], row["total"], row["state"]) for row in listed] == [(1, 2, "done")]
    tab.locator("tbody a").first.click()
    expect(tab.locator("h1")).to_contain_text("easy")


def test_a_form_that_is_wrong_marks_each_field_and_puts_the_focus_on_the_first(
    session: BrowserContext, project: str
) -> None:
    tab, said_by_console = session.new_page(), list[str]()
    tab.on("console", lambda message: said_by_console.append(message.text) if message.type == "error" else None)
    tab.goto("/experiments/new/?project=fruits")
    tab.get_by_label("Harness revision").fill("r1")
    tab.get_by_label("Root seed").fill("moon")
    tab.get_by_label("Temperature").fill("hot")
    expect(tab.locator("#preview")).to_contain_text("temperature: 'hot' is no number")
    expect(tab.locator("#preview")).to_contain_text("seed: no seed: 'moon'")
    with tab.expect_response(lambda answer: answer.request.method == "POST") as answer:
        tab.evaluate("document.querySelector('#new').submit()")  # the preview has disabled its button
    assert answer.value.status == 400
    for label, said in (("Root seed", "No seed: 'moon' (a whole"), ("Temperature", "'hot' is no number.")):
        field = tab.get_by_label(label)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(re.escape(said)))
    expect(tab.get_by_label("Root seed")).to_be_focused()
    expect(tab.get_by_label("Harness revision")).to_have_value("r1")
    expect(tab.get_by_label("Harness revision")).not_to_have_attribute("aria-invalid", "true")
    for width in (1440, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.get_by_label("Root seed").fill("1")
    tab.get_by_label("Temperature").fill("0")
    expect(tab.get_by_role("button", name="Run 2 rollouts")).to_be_enabled()
    tab.close()
    assert [line for line in said_by_console if "status of 400" not in line] == []


def test_a_training_is_stopped_and_taken_up_again(tab: Page, rig: RerunLab, project: str, tmp_path: Path) -> None:
    options = ("--project", "fruits", "--panel", "fruit", "--engine", "SmolLM2", "--epochs", "1", "--trials", "30")
    made = rig.lab.run("train", *options, "--patches", str(tmp_path)).split()[1]
    tab.goto("/trainings/")
    tab.get_by_role("link", name="Iteration 1 of 1 runs.").click()
    expect(tab.locator("main")).to_contain_text(re.compile(r"measures its baseline, \d+ of 60"))
    tab.get_by_role("button", name="Stop").click()
    expect(tab.locator("h1")).to_have_text("Stopped after 0 iterations.")
    tab.get_by_role("button", name="Go on").click()
    expect(tab.locator("h1")).to_have_text("Iteration 1 of 1 runs.")
    assert tab.request.get(f"/api/v1/trainings/{made}").json()["row"]["state"] == "running"
    tab.get_by_role("button", name="Stop").click()
    expect(tab.locator("h1")).to_have_text("Stopped after 0 iterations.")


def test_the_pages_fit_a_phone_and_name_their_controls(tab: Page, project: str) -> None:
    asked = "/experiments/new/?project=fruits&case=easy"
    for width in (1440, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        for place in ("/experiments/new/", asked, "/panels/", "/panels/1/", "/trainings/", "/jobs/"):
            tab.goto(place)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, place
            assert tab.locator("h1").count() == 1, place
            unnamed = tab.evaluate(
                "() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea')]"
                ".filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel || e.labels?.length))"
                ".map(e => e.outerHTML.slice(0, 120))"
            )
            assert unnamed == [], place
