"""Whatever stored texts hold, an admin who reads them does nothing but read: every page and part, in a real browser."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.crawling import Crawl
from tests.hostile import ASK, TAKEOVER, TEXTS
from tests.rig import ROOT, Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

pytestmark = pytest.mark.browser
SHARED = Path(__file__).parents[2].parent / "shared" / "cases" / "stored-html-takeover.jsonl"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that holds every hostile text in every field."""
    served = Lab(tmp_path_factory.mktemp("hostile"), "--port", "0", "--workers", "0")
    yield served
    served.program.close()


@pytest.fixture(scope="module")
def ids(hostile: Lab) -> dict[str, Any]:
    """The numbers of what it holds."""
    command = [sys.executable, "-m", "tests.browser.hostile_lab", str(hostile.home)]
    done = subprocess.run(command, env=hostile.env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def admin_session(browser: Browser, hostile: Lab) -> Iterator[BrowserContext]:
    """A session of its admin."""
    context = browser.new_context(base_url=hostile.address, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/login")
    page.fill("#id_username", "admin")
    page.fill("#id_password", hostile.passwords["admin"])
    page.click("button:has-text('Log in')")
    page.wait_for_url(lambda url: "/login" not in url)
    page.close()
    yield context
    context.close()


@pytest.fixture
def reading(admin_session: BrowserContext) -> Iterator[Page]:
    """A page of the admin."""
    page = admin_session.new_page()
    yield page
    page.close()


def users(page: Page) -> list[str]:
    page.goto("/account/")
    return page.locator("body").inner_text().splitlines()


def test_unfolding_a_prompt_makes_no_admin(reading: Page, hostile: Lab, ids: dict[str, Any]) -> None:
    crawl = Crawl(reading, hostile.address)
    before = users(reading)
    reading.goto(f"/rollouts/{ids['takeover']}/?step=2")
    folded = reading.locator("details.kept")
    folded.locator("summary").click()
    expect(folded.locator("pre")).to_contain_text(f"Be brief.{TAKEOVER}")
    expect(reading.locator("[evil], [hx-post='/account/users/']")).to_have_count(0)
    part = f"/rollouts/{ids['takeover']}/events/2/part/?name=kept"
    crawl.swap(part)
    assert reading.request.get(part).headers["content-type"].startswith("text/plain")
    assert users(reading) == before
    assert crawl.happened == []


def test_the_kept_takeover_is_text_too(reading: Page, hostile: Lab) -> None:
    if not SHARED.is_file():
        pytest.skip("the real traces are not beside this checkout")
    lines = hostile.run("import", "--json", str(SHARED)).splitlines()
    number = next(json.loads(line)["rollouts"][0] for line in lines if line.startswith("{"))
    crawl = Crawl(reading, hostile.address)
    crawl.open(f"{hostile.address}rollouts/{number}/?step=2")
    expect(reading.locator("details.kept pre")).to_contain_text("hx-post")
    assert reading.locator("[hx-post='/account/users/']").count() == 0
    assert "mallory" not in "".join(users(reading))
    assert crawl.happened == []


def test_htmx_heeds_nothing_inside_a_payload_and_swaps_nothing_that_is_no_markup(
    reading: Page, hostile: Lab, ids: dict[str, Any]
) -> None:
    crawl = Crawl(reading, hostile.address)
    reading.goto(f"/rollouts/{ids['takeover']}/?step=2")
    inside = """(markup) => { const place = document.querySelector("#detail .payload");
        place.innerHTML = markup; htmx.process(place); }"""
    reading.evaluate(inside, TAKEOVER)
    assert crawl.happened == []
    assert reading.locator("body").get_attribute("hx-headers") is None
    reading.reload()
    # an answer that says it is text is let go, even where a server sends it to htmx as it is
    reading.route("**/hostile-text", lambda route: route.fulfill(content_type="text/plain", body=TAKEOVER))
    crawl.swap("/hostile-text")
    assert [line for line in crawl.happened if "element" in line or "POST" in line] == []


def addresses(ids: dict[str, Any]) -> Iterator[str]:
    """Name a page of each kind, and each page on which another text stands in the fields of its own."""
    yield from ("/", "/rollouts/", "/rollouts/?by=case", "/experiments/", "/requests/", "/reruns/", "/regressions/")
    yield from ("/jobs/", "/engines/", "/import/", "/account/", "/panels/", "/trainings/")
    yield from (f"/panels/{ids['panel']}/", f"/projects/{ids['project']}/", f"/projects/{ids['project']}/memo/")
    yield from (f"/rollouts/values/?facet={name}" for name in ("tag", "case", "model", "project", "harness", "panel"))
    yield from (f"/experiments/grid/?project={ids['project']}", f"/experiments/{ids['candidate']}/")
    for page in ("/experiments/compare/", "/efficiency/"):
        yield f"{page}?e={ids['base']}&e={ids['candidate']}"
    for a, b in ids["pairs"]:
        yield from (f"/rollouts/{a}/?event=2", f"/compare/?a={a}&b={b}&row=2")
    for text in TEXTS:  # what is asked comes back in a sentence; an address holds no lone surrogate
        yield f"/rollouts/1/?step={quote(text.encode('utf-8', 'replace'), safe='')}"
    yield from (f"/rollouts/{ids['all']}/", f"/rollouts/{ids['takeover']}/?step=2")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_text_acts_on_any_page_or_part(reading: Page, hostile: Lab, ids: dict[str, Any]) -> None:
    crawl = Crawl(reading, hostile.address)
    before = users(reading)
    crawl.walk(addresses(ids))
    assert crawl.happened == [], f"{len(crawl.happened)} things happened"
    assert len(crawl.opened) > 4 * len(TEXTS)
    assert len(crawl.swapped) > 4 * len(TEXTS)
    assert users(reading) == before
    sheets = [address for address in crawl.downloads if "format=csv" in address]
    assert sheets
    for address in sheets:
        for row in csv.reader(io.StringIO(reading.request.get(address).text())):
            assert not [cell for cell in row if cell.startswith(("=", "+", "@", "\t", "\r"))], address


def test_the_walk_notices_what_acts(reading: Page, hostile: Lab, ids: dict[str, Any]) -> None:
    crawl = Crawl(reading, hostile.address)
    markup = f"<!doctype html><main></main><script src='/static/x.js'></script>{TAKEOVER}<img src={ASK}>"
    reading.route("**/acting", lambda route: route.fulfill(content_type="text/html", body=markup))
    crawl.open(f"{hostile.address}acting")
    reading.evaluate("fetch('/account/users/', {method: 'POST'})")
    reading.evaluate("alert(1)")
    noted = "\n".join(crawl.happened)
    assert "/hostile/x" in noted
    assert "POST" in noted
    assert "dialog" in noted
