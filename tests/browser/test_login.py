"""Logging in through real pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_each_role_logs_in_with_a_clean_console(page_as: Callable[[str], Page], role: str) -> None:
    page = page_as(role)
    expect(page.locator("h1")).to_be_visible()


def test_a_wrong_password_is_said(page: Page) -> None:
    page.goto("/login")
    page.fill("#id_username", "viewer")
    page.fill("#id_password", "wrong")
    page.click("button:has-text('Log in')")
    expect(page.get_by_role("alert")).to_contain_text("don't match")


def test_a_stranger_is_sent_to_the_login_page_and_back(page: Page) -> None:
    page.goto("/rollouts/")
    assert page.url.endswith("/login?next=/rollouts/")
