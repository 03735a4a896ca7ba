"""A press isn't lost where an answer replaces, meanwhile, what is pressed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled

pytestmark = pytest.mark.browser
ENDED = """
import sys, django; django.setup()
from harnesslab.store.models import Job, JobState
Job.objects.create(kind="import", state=JobState.DONE, message=sys.argv[1])
"""


def end_a_job(filled: Filled, message: str) -> None:
    """Add a job to the queue's page, so that its next answer is another one."""
    subprocess.run([sys.executable, "-c", ENDED, message], env=filled.lab.env, check=True)


@pytest.fixture
def queue(open_as_operator: Page, filled: Filled) -> Page:
    """The queue's page, with a link to its imports."""
    end_a_job(filled, "the first")
    page = open_as_operator
    page.goto("/jobs/")
    page.evaluate("() => { window.before = document.getElementById('kind-import') }")
    return page


def replaced(page: Page, filled: Filled, message: str) -> None:
    end_a_job(filled, message)
    expect(page.locator("#live").get_by_text(message).first).to_be_visible()
    assert page.evaluate("!window.before.isConnected")


def test_a_link_that_is_replaced_while_it_is_pressed_is_followed(queue: Page, filled: Filled) -> None:
    queue.locator("#kind-import").hover()
    queue.mouse.down()
    replaced(queue, filled, "while a link was pressed")
    queue.mouse.up()
    expect(queue).to_have_url(re.compile("kind=import"))


def test_a_press_that_is_let_go_elsewhere_follows_nothing(queue: Page, filled: Filled) -> None:
    queue.locator("#kind-import").hover()
    queue.mouse.down()
    replaced(queue, filled, "while a press went away")
    queue.mouse.move(2, 2)
    queue.mouse.up()
    queue.locator("#kind-all").click()
    expect(queue).to_have_url(re.compile("/jobs/$"))
