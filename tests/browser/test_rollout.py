"""One rollout: moving through its events, their addresses, search, payloads, notes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, Filled

pytestmark = pytest.mark.browser


def title(page: Page) -> str:
    return page.locator("#detail h2").first.inner_text()


def test_keys_move_by_event_and_by_step_and_keep_focus_in_the_list(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("payload", "?step=1"))
    expect(page.locator(".event.current")).to_have_id("e2")
    page.keyboard.press("j")
    expect(page.locator("#e3")).to_be_focused()
    expect(page.locator("#detail h2").first).to_have_text("Step 1 · run")
    page.keyboard.press("J")
    expect(page.locator("#detail h2").first).to_have_text("Step 2 · model → run")
    page.keyboard.press("K")
    page.keyboard.press("k")
    expect(page.locator("#e0")).to_be_focused()
    expect(page).to_have_url(re.compile("event=0$"))


def test_an_event_has_an_address_that_selects_it_again(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("payload"))
    page.locator("#e5").click()
    expect(page.locator("#detail .detail-head")).to_have_attribute("data-index", "5")
    before = title(page)
    page.reload()
    assert title(page) == before
    expect(page.locator(".event.current")).to_have_id("e5")


def test_the_link_to_an_event_is_copied(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(filled.rollout("payload", "?event=3"))
    page.get_by_role("button", name="copy link").click()
    expect(page.locator(".copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_search_leaves_the_events_that_match(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("payload"))
    page.keyboard.press("/")
    page.keyboard.type("echo")
    expect(page.locator(".event:visible")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_label("Find in steps")).not_to_be_focused()


def test_a_long_payload_is_unfolded(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("payload", "?event=3"))
    payload = page.locator(".block", has_text="result").locator("pre")
    expect(payload).not_to_contain_text("last line")
    page.get_by_role("link", name="show all 30k characters").click()
    expect(payload).to_contain_text("last line")
    expect(payload).to_be_focused()


def test_unchanged_messages_are_folded_and_fetched_when_opened(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("payload", "?step=2"))
    kept = page.locator(".block.kept")
    expect(kept).to_contain_text("4 messages · 2 unchanged · 2 new")
    kept.locator("summary").click()
    expect(kept.locator("pre")).to_contain_text("Do the task.")


def test_a_note_is_written_on_a_step(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("nested", "?step=1"))
    page.get_by_label("Note on this step").fill("retried here")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".notes")).to_contain_text("retried here")


def test_attempts_and_sub_agents_are_seen_in_the_list(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("nested"))
    expect(page.locator(".event .mark")).to_have_text("attempt 2")
    expect(page.locator(".event .agent")).to_have_text(["research", "research/reader"])
    page.locator(".detail .chip").nth(1).click()
    expect(page.locator("#detail .detail-head")).to_contain_text("Step 1")


def test_a_long_trace_is_walked_over_the_borders_of_its_windows(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("long", f"?event={LONG}"))
    first = int(page.locator(".event").first.get_attribute("data-index") or 0)
    page.locator(".event").first.click()
    page.keyboard.press("k")
    expect(page.locator(f"#e{first - 1}")).to_be_focused()
    indices = [int(row) for row in page.eval_on_selector_all(".event", "all => all.map(row => row.dataset.index)")]
    assert indices == list(range(indices[0], indices[-1] + 1))
    page.locator(".event").last.click()
    height = page.evaluate("scrollY")
    page.keyboard.press("j")
    expect(page.locator(f"#e{indices[-1] + 1}")).to_be_focused()
    assert page.evaluate("scrollY") == height
