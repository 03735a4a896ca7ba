"""What holds on every page: no sideways scroll on a phone, one heading, keys, the theme, Plotly only where it draws."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled

pytestmark = pytest.mark.browser
DRAWN = re.compile(r"/compare/|/efficiency/|/projects/\d+/$|/experiments/\d+/$")
"""Addresses of pages with a figure."""


def addresses(filled: Filled) -> Iterator[str]:
    yield from ("/", "/rollouts/", "/rollouts/?by=case&project=demonstration", "/rollouts/?q=nothing-like-this")
    yield from ("/requests/", "/requests/?unstable=1", "/import/", "/jobs/", "/account/")
    yield from ("/reruns/", "/regressions/", "/engines/", "/experiments/")
    yield from (filled.rollout("near-tie"), filled.rollout("nested"), filled.rollout("payload", "?event=3"))
    yield from (filled.pair("near-tie"), filled.pair("scratch-file"), filled.pair("near-tie", level="token-ids"))
    yield filled.pair("near-tie", only="tool-calls", differences="1")
    project, *measured = filled.ids["story"]
    yield from (f"/projects/{project}/", f"/projects/{project}/memo/", f"/experiments/grid/?project={project}")
    yield f"/experiments/{measured[1]}/"
    yield "/experiments/compare/?" + "&".join(f"e={number}" for number in measured)
    yield "/efficiency/?" + "&".join(f"e={number}" for number in filled.ids["experiments"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(open_as_admin: Page, filled: Filled, scheme: str) -> None:
    page = open_as_admin
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 390, "height": 844})
    for address in addresses(filled):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
        for menu in page.locator("main details.menu > summary").all():
            menu.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, (address, menu.inner_text())
            page.keyboard.press("Escape")


def test_pages_have_one_heading_a_title_of_their_own_and_load_plotly_only_to_draw(
    open_as_admin: Page, filled: Filled
) -> None:
    page = open_as_admin
    titles = set()
    for address in addresses(filled):
        page.goto(address)
        assert page.locator("h1").count() == 1, address
        assert page.locator("main").count() == 1
        assert ' style="' not in page.request.get(address).text(), address
        assert page.evaluate("!!window.Plotly") == bool(DRAWN.match(address)), address
        titles.add(page.title())
    assert "near-tie #1 / #2 · compare · HarnessLab" in titles
    assert len(titles) >= 12


def test_controls_have_names(open_as_admin: Page, filled: Filled) -> None:
    page = open_as_admin
    for address in addresses(filled):
        page.goto(address)
        unnamed = page.evaluate(
            "() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea')]"
            ".filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel || e.labels?.length))"
            ".map(e => e.outerHTML.slice(0, 120))"
        )
        assert unnamed == [], address


def test_the_theme_is_kept(open_as_operator: Page) -> None:
    page = open_as_operator
    page.emulate_media(color_scheme="light")
    page.goto("/rollouts/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Switch between light and dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.goto("/requests/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_help_names_the_keys_of_the_page_and_g_goes_places(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("next, previous difference")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile("/rollouts/$"))
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("compare the selected")
    expect(page.locator("#keys")).not_to_contain_text("difference")


def test_the_first_tab_skips_to_the_content(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_times_are_local_with_utc_on_hover(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?project=demonstration")
    time = page.locator("tbody time").first
    expect(time).to_have_attribute("data-local", "")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", time.get_attribute("title") or "")


def test_two_manifests_are_compared_and_the_exported_bytes_have_the_digest(
    open_as_operator: Page, filled: Filled, tmp_path: Path
) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.locator("#manifests > summary").click()
    page.get_by_role("link", name="Both manifests").click()
    expect(page.locator("h1")).to_contain_text("1 differ")
    expect(page.locator("tr.differs").first).to_contain_text("float32 sums, forward")
    digest = page.url.split("/manifests/")[1].split("/")[0]
    with page.expect_download() as download:
        page.get_by_role("link", name="Export manifest.json").click()
    download.value.save_as(tmp_path / "manifest.json")
    assert hashlib.sha256((tmp_path / "manifest.json").read_bytes()).hexdigest() == digest


def test_a_request_with_two_answers_leads_to_their_comparison(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/requests/?unstable=1")
    page.locator("tbody a.mono").first.click()
    expect(page.locator("h1")).to_contain_text("answered in")
    page.get_by_role("link", name="compare with the first").first.click()
    expect(page.locator("#sentence")).not_to_be_empty()


def test_a_stranger_is_brought_back_after_logging_in(page: Page, filled: Filled) -> None:
    address = filled.rollout("near-tie", "?event=3")
    page.goto(address)
    page.fill("#id_username", "viewer")
    page.fill("#id_password", filled.lab.passwords["viewer"])
    page.click("button:has-text('Log in')")
    expect(page).to_have_url(re.compile(re.escape(address) + "$"))


def test_a_viewer_is_told_what_an_import_needs(page_as: Callable[[str], Page]) -> None:
    page = page_as("viewer")
    page.goto("/import/")
    expect(page.locator("main")).to_contain_text("needs the role operator")
