"""Takes the pictures of the documentation from a fresh lab with the demonstration: `script/pictures`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.conftest import CHROMIUM_FLAGS
from tests.rig import Lab

MAX_BYTES = 200_000


def take(browser: Browser, lab: Lab, folder: Path) -> None:
    """Take every picture."""
    compare = "/compare/?a={}&b={}&level=token-ids"
    rerun = f"/reruns/{_rerun(browser, lab)}/"
    story, efficiency = _trained(browser, lab)
    for name, address, height in (
        ("compare-light", compare, 900),
        ("compare-dark", compare, 900),
        ("rollouts-light", "/rollouts/?project=demonstration&by=case", 600),
        ("rollout-light", "/rollouts/{}/?step=2", 800),
        ("rerun-light", rerun, 560),
        ("story-light", story, 820),
        ("efficiency-light", efficiency, 760),
    ):
        context = browser.new_context(
            base_url=lab.address,
            viewport={"width": 1440, "height": height},
            color_scheme="dark" if name.endswith("dark") else "light",
        )
        page = context.new_page()
        _log_in(page, lab)
        page.goto("/rollouts/?case=near-tie&experiment=greedy&sort=oldest")
        ids = page.eval_on_selector_all("tr[data-id]", "rows => rows.map(row => row.dataset.id)")
        page.goto(address.format(*ids))
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}.png")
        context.close()
        size = (folder / f"{name}.png").stat().st_size
        assert size <= MAX_BYTES, f"{name}.png has {size:,} bytes"


def _rerun(browser: Browser, lab: Lab) -> int:
    """Rerun a live rollout of the demonstration with drawn seeds, once it has ended, and return the rerun's id."""
    page = browser.new_page(base_url=lab.address)
    _log_in(page, lab)
    rows = page.locator("tr[data-id]")
    deadline = time.monotonic() + 300
    while not rows.count() or "running" in rows.first.inner_text():
        assert time.monotonic() < deadline, "the demonstration's live rollouts did not end"
        page.goto("/rollouts/?case=count-lines&q=reference")
        time.sleep(2)
    rollout = rows.first.get_attribute("data-id") or ""
    page.close()
    arguments = ("rerun", rollout, "--mode", "live", "--attempts", "4", "--seed", "drawn", "--wait", "--json")
    said = lab.run(*arguments)
    return int(json.loads(said[said.index("{") :])["id"])


def _trained(browser: Browser, lab: Lab) -> tuple[str, str]:
    """Train the small harness; returns the addresses of its story, and of the last promotion against the baseline."""
    lab.run("demo")
    page = browser.new_page(base_url=lab.address)
    _log_in(page, lab)
    rows = page.request.get("/api/v1/experiments?project=small shell training").json()["rows"]
    promoted = next(row["id"] for row in rows if row["decision"] == "promoted")
    first = min(row["id"] for row in rows)
    story = str(page.request.get("/projects/?name=small shell training").url).removeprefix(lab.address.rstrip("/"))
    page.close()
    return story, f"/efficiency/?e={first}&e={promoted}"


def _log_in(page: Page, lab: Lab) -> None:
    page.goto("/login")
    page.fill("#id_username", "admin")
    page.fill("#id_password", lab.passwords["admin"])
    page.click("button:has-text('Log in')")
    page.wait_for_url(lambda url: "/login" not in url)


def main(folder: Path) -> None:
    """Start a lab, take the pictures, stop it."""
    folder.mkdir(parents=True, exist_ok=True)
    place = shutil.which(os.environ.get("CHROMIUM", "")) or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        lab = Lab(Path(home), "--port", "0", "--demo")
        browser = playwright.chromium.launch(executable_path=place, args=list(CHROMIUM_FLAGS))
        try:
            take(browser, lab, folder)
        finally:
            browser.close()
            lab.program.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
