"""The comparison: the sentence, jumping, the strip, contract, siblings, override, report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.conftest import LONG, Filled

pytestmark = pytest.mark.browser


def test_the_sentence_marks_what_tells(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    expect(page.locator("#sentence b")).to_have_text(["model", "kernels"])
    expect(page.locator("#sentence .said").first).to_contain_text("head -n 1")
    expect(page.locator("#place")).to_have_text("difference 1 of 2")


def test_keys_jump_between_differences_and_the_address_follows(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.keyboard.press("n")
    expect(page.locator("#place")).to_have_text("difference 2 of 2")
    expect(page).to_have_url(re.compile(r"\?a=\d+&b=\d+&row=2$"))
    expect(page.locator("#r2")).to_be_focused()
    page.keyboard.press("p")
    expect(page.locator(".row.current")).to_have_id("r1")
    page.keyboard.press("k")
    expect(page.locator(".row.current")).to_have_id("r0")
    page.reload()
    expect(page.locator(".row.current")).to_have_id("r0")


def test_a_click_in_the_strip_selects_and_the_strip_follows(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    box = page.locator("#strip .shapelayer path")
    before = box.first.get_attribute("d")
    page.mouse.click(*centre(page, "#strip .bars .point >> nth=1"))
    expect(page.locator(".row.current")).to_have_class(re.compile("equal"))
    assert box.first.get_attribute("d") != before


def centre(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_only_differences_keeps_place_and_focus(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.locator("#only").check()
    expect(page.locator("#aligned .row")).to_have_count(2)
    expect(page.locator("#only")).to_be_focused()
    expect(page).to_have_url(re.compile("differences=1"))
    page.keyboard.press("d")
    expect(page.locator("#aligned .row")).to_have_count(6)


def test_sides_are_swapped(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    a, b = filled.ids["near-tie"]
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(f"a={b}&b={a}"))


def test_the_level_of_tokens_shows_tokens(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.get_by_role("link", name=re.compile("token ids")).click()
    expect(page.locator("#level-token-ids")).to_be_focused()
    differing = page.locator(".tokens tr.differs")
    expect(differing).to_contain_text("24 head")
    expect(differing).to_contain_text("36 sed")


def test_a_scrub_rule_is_switched_and_its_menu_stays_open(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("scratch-file"))
    expect(page.locator("#sentence")).to_contain_text("Identical in all 2 steps")
    page.locator("#scrub > summary").click()
    page.locator("#rule-temp-names").click()
    expect(page.locator("#sentence")).not_to_contain_text("Identical in all")
    expect(page.locator("#rule-temp-names")).to_be_focused()
    page.locator("#rule-temp-names").click()
    expect(page.locator("#sentence")).to_contain_text("Identical in all 2 steps")


def test_tool_calls_alone(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.get_by_role("link", name="tool calls alone").click()
    expect(page.locator("#sentence")).to_contain_text("They part at the first tool call")


def test_a_sibling_takes_the_place_of_b(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.locator("#siblings > summary").click()
    page.locator("#siblings a").first.click()
    expect(page).to_have_url(re.compile(rf"a={filled.ids['near-tie'][0]}&b=\d+$"))
    expect(page.locator("#sentence")).not_to_be_empty()


def test_the_cause_is_overridden_with_a_reason(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    page.locator("#override > summary").click()
    page.get_by_label("Cause").select_option("numerics")
    page.get_by_label("Reason").fill("the kernel adds in another order")
    page.get_by_role("button", name="Record as operator").click()
    expect(page.locator(".notice")).to_contain_text("operator found the cause to be numerics")


def test_the_report_is_downloaded(open_as_operator: Page, filled: Filled, tmp_path: Path) -> None:
    page = open_as_operator
    page.goto(filled.pair("near-tie"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Export report").click()
    download.value.save_as(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["first_divergence"]["boundary"] == "model"


def test_differences_far_apart_are_jumped_to(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("long"))
    total = int((page.locator("#place").inner_text().split("of ")[1]).replace(",", ""))
    page.evaluate("() => { window.stayed = true }")
    for _ in range(2, total + 1):
        page.keyboard.press("n")  # faster than the pages answer
    expect(page.locator("#place")).to_have_text(f"difference {total} of {total}")
    assert page.evaluate("window.stayed")
    row = int(page.locator(".row.current").get_attribute("data-row") or 0)
    assert row > 2 * (LONG - 20)
    expect(page.locator(".row.current")).to_be_in_viewport()
    page.locator(".more.earlier").click()
    expect(page.locator(".row").first).not_to_have_id(f"r{row - 20}")
    numbers = [int(found) for found in page.eval_on_selector_all(".row", "all => all.map(row => row.dataset.row)")]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def numbers_of(page: Page) -> list[int]:
    return [int(found) for found in page.eval_on_selector_all(".row", "all => all.map(row => row.dataset.row)")]


def test_earlier_rows_clicked_while_jumps_are_under_way_come_after_them(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("long"))
    total = int((page.locator("#place").inner_text().split("of ")[1]).replace(",", ""))
    page.evaluate("() => { window.stayed = true }")
    for _ in range(2, total + 1):
        page.keyboard.press("n")
    page.locator(".more.earlier").click()  # as soon as there is one
    expect(page.locator("#place")).to_have_text(f"difference {total} of {total}")
    row = int(page.locator(".row.current").get_attribute("data-row") or 0)
    expect(page.locator(f"#r{row - 21}")).to_be_attached()
    numbers = numbers_of(page)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert page.evaluate("window.stayed")


def test_earlier_rows_clicked_before_a_list_is_replaced_are_those_of_the_new_one(
    open_as_operator: Page, filled: Filled
) -> None:
    page = open_as_operator
    page.goto(filled.pair("long", row=str(2 * (LONG - 5))))
    page.keyboard.press("p")  # to a difference in the list that is there
    held: list[Route] = []
    page.route("**/compare/rows/**", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/compare/rows/**"):
        page.keyboard.press("p")
    page.locator(".more.earlier").click()  # of the list that is about to go
    held[0].continue_()
    expect(page.locator(f"#r{2 * (LONG - 5)}")).not_to_be_attached()
    number = int(page.locator(".row.current").get_attribute("data-row") or 0)
    expect(page.locator(f"#r{number - 21}")).to_be_attached()
    assert len(held) == 1


def test_after_a_request_that_failed_the_keys_go_on(sessions: dict[str, BrowserContext], filled: Filled) -> None:
    page = sessions["operator"].new_page()  # whose console may say that a request failed
    page.goto(filled.pair("near-tie"))
    page.route("**/compare/row/**", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.keyboard.press("n")
    page.keyboard.press("n")  # waits for a detail that never comes
    expect(page.locator(".row.current")).to_have_id("r1")
    page.unroute("**/compare/row/**")
    page.keyboard.press("n")
    expect(page.locator("#place")).to_have_text("difference 2 of 2")
    page.close()


def test_a_window_of_rows_draws_the_strip_no_more_than_a_choice_does(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.goto(filled.pair("long", row=str(2 * (LONG - 5))))
    page.evaluate(
        "() => { window.drawn = 0; const react = Plotly.react;"
        " Plotly.react = (...all) => { window.drawn += 1; return react(...all); } }"
    )
    first = numbers_of(page)[0]
    page.locator(".more.earlier").click()
    expect(page.locator(f"#r{first - 1}")).to_be_attached()
    assert page.evaluate("window.drawn") == 0
    page.locator(f"#r{first}").click()
    expect(page.locator(f"#r{first}")).to_have_class(re.compile("current"))
    assert page.evaluate("window.drawn") == 1


def test_on_a_phone_the_detail_stands_below_its_row(open_as_operator: Page, filled: Filled) -> None:
    page = open_as_operator
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(filled.pair("near-tie"))
    page.locator("#r2").click()
    expect(page.locator("#r2 + #detail h2")).to_contain_text("run")
