"""The efficiency page: figures are drawn, their tables open with the keyboard, and all of it downloads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled

pytestmark = pytest.mark.browser


def test_figures_are_drawn_and_their_numbers_reached_and_downloaded(
    open_as_operator: Page, filled: Filled, tmp_path: Path
) -> None:
    page = open_as_operator
    a, b = filled.ids["experiments"]
    page.goto(f"/efficiency/?e={a}&e={b}")
    expect(page.locator("#sentence")).to_contain_text("output tokens per solve")
    for name in ("levers", "spend", "survival", "solves", "tools", "model-time"):
        expect(page.locator(f"#{name} .drawing .main-svg").first).to_be_visible()
    summary = page.locator("#spend summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#spend td").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="Useful share and failed spend, the numbers")).to_be_focused()
    for kind, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", "\ufeffexperiment".encode())):
        with page.expect_download() as download:
            page.locator("#spend .exports").get_by_text(kind).click()
        kept = tmp_path / download.value.suggested_filename
        download.value.save_as(kept)
        assert kept.read_bytes().startswith(begins)
        assert kept.suffix == f".{kind.lower()}"
    page.locator("#model-time .bars .point path").first.click(force=True)
    expect(page).to_have_url(re.compile(r"/rollouts/\d+/"))


def test_figures_follow_the_colour_scheme(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    query = "&".join(f"e={number}" for number in filled.ids["experiments"])
    page.goto(f"/efficiency/?{query}")
    colours = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("#spend .main-svg").first).to_be_visible()
        colours.add(page.locator("#spend .point path").first.evaluate("path => getComputedStyle(path).fill"))
    assert len(colours) == 2
