"""The list of experiments by keyboard: reaching it, choosing some, and where the bar then leads."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_experiments_are_reached_chosen_and_set_side_by_side_with_keys(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile("/experiments/$"))
    compare, efficiency = page.locator("#bar-compare"), page.locator("#bar-efficiency")
    expect(compare).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(compare).to_be_hidden()
    expect(efficiency).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    chosen = [box.input_value() for box in page.locator("input[name=pick]:checked").all()]
    assert len(chosen) == 2
    query = "&".join(f"e={pk}" for pk in chosen)
    expect(compare).to_have_attribute("href", re.compile(rf"/experiments/compare/\?{query}$"))
    expect(efficiency).to_have_attribute("href", re.compile(rf"/efficiency/\?{query}$"))
    page.get_by_role("button", name="clear").click()
    expect(page.locator("#bar")).to_be_hidden()
