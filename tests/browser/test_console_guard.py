"""The guard of the browser tests sees what it has to see."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.rig import wait_until

pytestmark = pytest.mark.browser


def test_inline_script_is_refused_and_noticed(page: Page, console_errors: list[str]) -> None:
    page.goto("/login")
    page.evaluate(
        "() => { const made = document.createElement('script'); made.textContent = 'window.ran = 1';"
        " document.body.append(made) }"
    )
    wait_until(lambda: page.evaluate("1") and console_errors, 5, "a violation on the console")
    assert "Content Security Policy" in console_errors[0]
    assert page.evaluate("window.ran") is None
    console_errors.clear()
