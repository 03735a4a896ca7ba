"""The story page: its figure is drawn, a mark opens its experiment, candidates are looked at with keys."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled

pytestmark = pytest.mark.browser


def test_a_story_is_read_with_keys_and_a_mark_opens_its_experiment(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    project, _, worse, better, *_ = filled.ids["story"]
    page.goto(f"/projects/{project}/")
    expect(page.locator("#sentence")).to_contain_text("2 candidates took the baseline from 1/3 to 2/3 cases solved")
    expect(page.locator("#story .drawing .main-svg").first).to_be_visible()
    expect(page.locator("#selected")).to_contain_text("promoted")
    page.keyboard.press("j")
    expect(page.locator("#selected")).to_contain_text("Regressions: one")
    expect(page).to_have_url(re.compile(f"c={worse}$"))
    expect(page.locator("tr.current")).to_have_attribute("data-id", str(worse))
    summary = page.locator("#story summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Solved cases, the numbers")).to_be_visible()
    page.locator("#story .scatterlayer .trace .points path[transform]").nth(0).scroll_into_view_if_needed()
    promoted = page.evaluate(
        "() => { const place = document.querySelector('#story .drawing');"
        " const trace = place.data.find((each) => each.name === 'promoted'); const box = place.getBoundingClientRect();"
        " const { xaxis, yaxis } = place._fullLayout;"
        " return [box.x + xaxis._offset + xaxis.l2p(trace.x[0]), box.y + yaxis._offset + yaxis.l2p(trace.y[0])]; }"
    )
    page.mouse.move(*promoted)
    page.mouse.click(*promoted)
    expect(page).to_have_url(re.compile(f"/experiments/{better}/$"))
    expect(page.locator("#transitions .main-svg").first).to_be_visible()
    expect(page.locator("#matrix .main-svg").first).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/experiments/{better}/?columns=all")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
