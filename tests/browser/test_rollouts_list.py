"""The rollouts list: filters, address, paging, choosing two, the baseline, saved views."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import MANY, Filled

pytestmark = pytest.mark.browser


def test_a_facet_filters_and_its_chip_is_removed_with_the_keyboard(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?project=demonstration")
    page.get_by_text("+ filter").click()
    page.get_by_role("button", name="experiment").click()
    page.locator("#facet-values a", has_text="greedy").click()
    expect(page).to_have_url(re.compile("experiment=greedy"))
    expect(page.locator("h1")).to_contain_text("16 rollouts")
    page.get_by_label("Remove the filter experiment greedy").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("64 rollouts")
    page.locator("[data-search]").press("Backspace")
    expect(page).not_to_have_url(re.compile("project="))


def test_a_facet_with_many_values_is_searched_and_escape_closes_the_menu(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/")
    page.get_by_text("+ filter").click()
    page.get_by_role("button", name="case", exact=True).click()
    search = page.get_by_label("Search the values of case")
    expect(search).to_be_focused()
    search.fill("near")
    expect(page.locator("#facet-values a")).to_have_count(1)
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_text("+ filter")).to_be_focused()
    expect(search).to_be_hidden()


def test_sort_and_grouping_are_in_the_address_and_back_undoes_them(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?project=demonstration")
    page.locator("select[name=sort]").select_option("most-steps")
    expect(page).to_have_url(re.compile(r"project=demonstration&sort=most-steps$"))
    page.locator("select[name=by]").select_option("case")
    expect(page).to_have_url(re.compile("by=case"))
    expect(page.locator("h1")).to_contain_text("8 cases")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("64 rollouts")
    expect(page.locator("select[name=sort]")).to_have_value("most-steps")
    expect(page.locator("[data-search]")).to_be_enabled()


def test_the_list_goes_on_while_one_scrolls(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?q=case-")
    rows = page.locator("#rows tr[data-id]")
    expect(rows).to_have_count(100)
    rows.last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 4000)
    expect(rows).to_have_count(MANY)


def test_two_ticked_rollouts_are_compared_and_three_are_explained(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?case=near-tie&experiment=greedy")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
    expect(page.locator("#bar-text")).to_have_text("near-tie greedy #2 with near-tie greedy #1")
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/compare/\?a=\d+&b=\d+$"))
    page.goto("/rollouts/?case=near-tie")
    for number in range(3):
        page.locator("input[name=pick]").nth(number).check()
    expect(page.locator("#bar-text")).to_contain_text("3 are ticked; two are compared at a time")
    expect(page.locator("#bar-go")).to_be_disabled()


def test_a_baseline_stays_in_sight_on_other_pages_of_the_list(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?case=near-tie&experiment=greedy")
    page.locator("input[name=pick]").first.check()
    page.get_by_role("button", name="Pin as baseline").click()
    page.goto("/rollouts/?case=copy-file&experiment=greedy")
    expect(page.locator("#pinned")).to_contain_text("near-tie greedy #2")
    page.locator("input[name=pick]").first.check()
    expect(page.locator("#bar-text")).to_contain_text("baseline near-tie greedy #2 with copy-file greedy")
    page.get_by_role("button", name="unpin").click()
    expect(page.locator("#pinned")).to_be_hidden()


def test_the_same_prefix_reads_as_words(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.rollout("near-tie", "?event=2"))
    page.get_by_role("link", name="Same up to here").click()
    expect(page.locator(".chip")).to_contain_text("same first 2 events as")
    expect(page.locator(".chip")).to_contain_text("near-tie #1")


def test_a_view_is_saved_under_a_name(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/rollouts/?outcome=solved")
    page.once("dialog", lambda dialog: dialog.accept("the solved"))
    page.get_by_text("views", exact=True).click()
    page.get_by_role("button", name="Save this view").click()
    page.goto("/rollouts/")
    page.get_by_text("views", exact=True).click()
    page.get_by_role("link", name="the solved").click()
    expect(page).to_have_url(re.compile("outcome=solved"))
