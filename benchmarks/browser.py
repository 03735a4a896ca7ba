"""How long pages take in headless Chromium with an empty cache, and what is transferred.

    .venv/bin/python benchmarks/browser.py URL::TEXT... [--user NAME --password WORD] [--times 5]

A page is done when TEXT is visible. Each visit is a fresh browser context at 1440 x 900; what is transferred is
counted two seconds later. With --user it logs in first and brings only the cookies. Any tool's pages can be
measured, those of other tools too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from typing import Any

from playwright.sync_api import Browser, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
SETTLE_MS = 2000


def state(browser: Browser, url: str, user: str, password: str) -> Any:
    """Log in and return the cookies."""
    context = browser.new_context()
    page = context.new_page()
    page.goto("/".join(url.split("/")[:3]) + "/login")
    page.fill("#id_username", user)
    page.fill("#id_password", password)
    page.click("button.primary")
    page.wait_for_load_state("networkidle")
    kept = context.storage_state()
    context.close()
    return kept


def visit(browser: Browser, url: str, text: str, kept: Any) -> tuple[float, int, int]:
    """Return (milliseconds, bytes transferred, requests) of one cold visit."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, storage_state=kept)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    transferred: list[int] = []
    session.on("Network.loadingFinished", lambda event: transferred.append(int(event["encodedDataLength"])))
    began = time.perf_counter()
    page.goto(url, wait_until="commit", timeout=60_000)
    page.get_by_text(text).filter(visible=True).first.wait_for(timeout=60_000)
    took = 1000 * (time.perf_counter() - began)
    page.wait_for_timeout(SETTLE_MS)
    context.close()
    return took, sum(transferred), len(transferred)


def main() -> None:
    """Measure and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--user", default="")
    parser.add_argument("--password", default="")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    place = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=FLAGS)
        for url, text in (page.split("::", 1) for page in given.pages):
            kept = state(browser, url, given.user, given.password) if given.user else None
            visits = [visit(browser, url, text, kept) for _ in range(given.times)]
            print(
                json.dumps(
                    {
                        "url": url,
                        "cold_ms": round(statistics.median(took for took, _, _ in visits)),
                        "bytes": round(statistics.median(size for _, size, _ in visits)),
                        "requests": visits[0][2],
                    }
                )
            )
        browser.close()


if __name__ == "__main__":
    main()
