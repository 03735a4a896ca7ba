"""Reruns in a browser, over a real worker, engine and sandbox: what repeats, what parts, where and why."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.rerun_lab import RerunLab

pytestmark = pytest.mark.browser
LONG = 90_000
"""Milliseconds in which a few short rollouts end on a loaded machine."""


def ask(page: Page, rig: RerunLab, case: str, **fields: str) -> None:
    """Fill the form of a case's rollout and send it."""
    page.goto(rig.address(case))
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(f"{rig.address(case)}rerun/"))
    for name, value in fields.items():
        field = page.locator(f"[name={name}]")
        if field.first.get_attribute("type") == "radio":
            page.locator(f"[name={name}][value={value}]").check()
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    page.get_by_role("button", name="Rerun", exact=True).click()
    expect(page).to_have_url(re.compile(r"/reruns/\d+/$"))


def ended(page: Page, attempts: int = 1) -> None:
    """Wait, on a page that refreshes itself, until every attempt has ended."""
    expect(page.locator("tbody .outcome", has_text="done")).to_have_count(attempts, timeout=LONG)


def compared(page: Page, level: str = "") -> str:
    """Open the comparison of the first attempt with its parent and return what it says first."""
    page.locator("#compare-0").click()
    expect(page.locator("#sentence")).not_to_be_empty()
    if level:
        page.locator(f"#level-{level}").click()
        expect(page.locator(f"#level-{level}")).to_have_attribute("aria-current", "true")
    return page.locator("#sentence").inner_text()


def reruns_of(page: Page, rig: RerunLab, case: str) -> list[Any]:
    found: list[Any] = page.request.get(f"/api/v1/rollouts/{rig.rollouts[case]}/reruns").json()
    return found


def test_the_same_seed_gives_three_identical_rollouts_and_a_double_click_makes_one_rerun(
    tab: Page, rig: RerunLab
) -> None:
    tab.goto(rig.address("plain"))
    before = len(reruns_of(tab, rig, "plain"))
    tab.locator("#rerun-this").click()
    tab.fill("[name=attempts]", "3")
    expect(tab.locator("#preview")).to_contain_text("3 attempts: about 6 model calls")
    expect(tab).to_have_url(re.compile("attempts=3"))
    tab.get_by_role("button", name="Rerun", exact=True).dblclick()
    expect(tab).to_have_url(re.compile(r"/reruns/\d+/$"))
    assert len(reruns_of(tab, rig, "plain")) == before + 1
    expect(tab.locator("h1")).to_contain_text("No attempt has ended yet")
    ended(tab, 3)
    expect(tab.locator("h1")).to_have_text(
        "Went as the parent every time, 3/3 (95 % CI 44–100 %), live, level token ids, fixed seed."
    )
    expect(tab.locator(".same.yes")).to_have_count(3)
    assert "hx-get" not in (tab.locator("#live").get_attribute("hx-trigger") or "")
    assert "Identical" in compared(tab, "token-ids")


def test_another_seed_parts_at_the_model_and_is_declared(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "plain", seed="number", seed_number="7")
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("Never went as the parent, 0/1")
    said = compared(tab, "token-ids")
    assert "boundary model" in said or "the model" in said, said
    assert re.search(r"declare a difference: [^.]*seed", said), said
    assert re.search(r"token \d+", said), said


def test_another_attention_backend_is_declared(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "plain", engine="SmolLM2, flash attention off")
    ended(tab)
    said = compared(tab, "logprobs")
    assert re.search(r"declare a difference: [^.]*attention backend", said), said


def test_another_harness_revision_is_a_declared_change(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "plain", revision="r2")
    ended(tab)
    said = compared(tab)
    assert "declared harness change" in said.lower() or "declared change" in said.lower(), said


def test_an_unpinned_tool_is_the_environment_and_the_model_read_it_as_it_was(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "unpinned")
    ended(tab)
    said = compared(tab)
    expect(tab.locator(".facts").first).to_contain_text("environment")
    assert "the model read it as it was" in said, said


def test_a_simulated_user_that_answers_differently_is_the_user(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "asked", seed="number", seed_number="11")
    ended(tab)
    compared(tab)
    expect(tab.locator(".facts").first).to_contain_text("first raw difference step 1, user")


def test_a_timeout_in_one_run_is_timing(tab: Page, rig: RerunLab) -> None:
    tab.goto(f"/compare/?a={rig.rollouts['in-time']}&b={rig.rollouts['late']}")
    expect(tab.locator(".facts").first).to_contain_text("cause timing")


def test_a_recorded_rerun_and_its_self_test(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "unpinned", mode="recorded")
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("The record is complete")
    tab.goto(rig.address("unpinned", "rerun/?mode=recorded"))
    expect(tab.locator("[name=attempts]")).to_be_hidden()
    tab.get_by_label("Self-test").check()
    tab.get_by_role("button", name="Rerun", exact=True).click()
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("Self-test passed: it diverged, as it must")


def test_a_hybrid_fork_is_offered_with_the_boundaries_of_the_recording(tab: Page, rig: RerunLab) -> None:
    tab.goto(rig.address("plain", "rerun/"))
    expect(tab.get_by_label("model live")).to_be_hidden()
    tab.locator("[name=mode][value=hybrid]").check()
    tab.get_by_label("model live").check()
    tab.fill("[name=step]", "2")
    expect(tab.locator("#preview")).to_contain_text("1 model call")
    tab.fill("[name=step]", "9")
    expect(tab.locator("#preview")).to_contain_text("can't be forked at step 9")
    expect(tab.get_by_role("button", name="Rerun", exact=True)).to_be_disabled()
    tab.go_back()


def test_a_fork_serves_its_prefix_and_goes_on_live(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "plain", step="2")
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("Went as the parent, 1/1")
    assert "Identical" in compared(tab, "token-ids")


def test_live_tools_under_a_recorded_model_are_executed_and_ask_nothing(tab: Page, rig: RerunLab) -> None:
    tab.goto(rig.address("unpinned", "rerun/?mode=hybrid"))
    tab.get_by_label("tool:run live").check()
    expect(tab.locator("#preview")).to_contain_text("executed anew")
    tab.get_by_role("button", name="Rerun", exact=True).click()
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("hybrid")
    said = compared(tab)
    assert re.search(r"boundary tool:run.*clock-times@1 removes it", said), said


def test_several_are_ticked_and_share_a_form(tab: Page, rig: RerunLab) -> None:
    tab.goto("/rollouts/?project=browser&sort=oldest")
    for _ in range(2):
        tab.keyboard.press("j")
        tab.keyboard.press("x")
    tab.keyboard.press("r")
    expect(tab.locator("h1")).to_contain_text("2 rollouts, each with the same plan")


def test_running_and_waiting_attempts_are_cancelled_and_the_focus_stays(tab: Page, rig: RerunLab) -> None:
    ask(tab, rig, "slow", attempts="6")
    expect(tab.locator("tbody tr").nth(0)).to_contain_text("so far", timeout=LONG)
    expect(tab.locator(".log")).to_contain_text("Name a fruit", timeout=LONG)
    cancel = tab.locator("#cancel")
    cancel.focus()
    shown = tab.locator("tbody tr").nth(0).inner_text()
    expect(tab.locator("tbody tr").nth(0)).not_to_have_text(shown)
    expect(cancel).to_be_focused()
    tab.goto("/jobs/")
    expect(tab.locator("h1")).to_have_text(re.compile(r"1 job runs, [1-5] waits?\."))
    tab.get_by_role("button", name=re.compile("Cancel job")).last.click()
    expect(tab.locator("main")).to_contain_text("cancelled before it began")
    tab.go_back()
    tab.get_by_role("link", name=re.compile("rerun")).first.click()
    tab.locator("#cancel").click()
    expect(tab.locator("#cancel")).to_have_count(0, timeout=LONG)
    # one that ran and those that waited; the first ones may have ended meanwhile
    assert tab.locator("tbody .outcome", has_text="cancelled").count() >= 3
    expect(tab.locator("tbody .outcome", has_text="running")).to_have_count(0)


def test_a_regression_case_is_made_from_a_step_and_measured(tab: Page, rig: RerunLab) -> None:
    tab.goto(rig.address("plain", "?step=2"))
    tab.get_by_role("link", name="make a regression case").click()
    tab.fill("[name=name]", "runs true")
    tab.get_by_role("button", name="Make the case").click()
    expect(tab.locator("main")).to_contain_text("from step 2 on: calls run with command holding 'true' at that step")
    tab.fill("[name=attempts]", "1")
    tab.get_by_role("button", name="Measure").click()
    ended(tab)
    expect(tab.locator("h1")).to_contain_text("1/1")
    tab.get_by_role("link", name="regression case").click()
    expect(tab.locator("h1")).to_contain_text("under the recorded revision, live, drawn seeds")


def test_the_stored_trace_is_checked_in_place_and_engines_have_a_key(tab: Page, rig: RerunLab) -> None:
    tab.goto(rig.address("plain"))
    tab.get_by_role("button", name="Check consistency").click()
    expect(tab.locator("#consistency-said")).to_contain_text("Consistent: all")
    expect(tab).to_have_url(re.compile(rig.address("plain")))
    tab.keyboard.press("g")
    tab.keyboard.press("n")
    expect(tab.locator("h1")).to_contain_text("2 of 2 engines answered")
    tab.get_by_role("link", name="SmolLM2", exact=True).click()
    expect(tab.locator("main")).to_contain_text("server-reported")


def test_a_comparison_leads_to_a_rerun_of_both_from_where_they_part(tab: Page, rig: RerunLab) -> None:
    tab.goto(f"/compare/?a={rig.rollouts['plain']}&b={rig.rollouts['asked']}")
    tab.keyboard.press("r")
    expect(tab.locator("h1")).to_contain_text("2 rollouts, each with the same plan")


def test_no_page_of_reruns_scrolls_sideways_on_a_phone_or_has_a_control_without_a_name(
    tab: Page, rig: RerunLab
) -> None:
    made = reruns_of(tab, rig, "plain") or reruns_of(tab, rig, "unpinned")
    places = ["/reruns/", "/jobs/", "/engines/", "/engines/1/", "/regressions/", rig.address("plain")]
    places += [rig.address("plain", f"rerun/?mode={mode}") for mode in ("live", "hybrid", "recorded")]
    places += [f"/reruns/{item['id']}/" for item in made[:1]] + [rig.address("plain", "regression/?step=1")]
    for width in (1440, 390):
        tab.set_viewport_size({"width": width, "height": 844})
        for place in places:
            tab.goto(place)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, place
            assert tab.locator("h1").count() == 1, place
            unnamed = tab.evaluate(
                "() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea')]"
                ".filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel || e.labels?.length))"
                ".map(e => e.outerHTML.slice(0, 120))"
            )
            assert unnamed == [], place
