"""The import page: choosing and dropping files, each with its result; a large one becomes a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.rig import native_lines

pytestmark = pytest.mark.browser


def trace(case: str) -> bytes:
    return native_lines(1, case).encode()


def payload(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/json", "buffer": content}


def test_several_chosen_files_each_get_a_result(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/import/")
    page.get_by_label("project").fill("dropped")
    good = trace("chosen")
    files = [payload("good.jsonl", good), payload("again.jsonl", good), payload("odd.json", b'{"a": 1}')]
    page.locator("input[type=file]").set_input_files(files)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#progress")).to_have_text("3 files done.")
    rows = page.locator("#results tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(2)).to_contain_text("good.jsonlimported")
    expect(rows.nth(1)).to_contain_text("again.jsonlduplicate")
    expect(rows.nth(0)).to_contain_text("odd.jsonrefused")
    rows.nth(2).get_by_role("link").click()
    expect(page.locator("h1")).to_contain_text("chosen-0")


def test_dropped_files_are_imported(open_as_operator: Page) -> None:
    page = open_as_operator
    page.goto("/import/")
    page.get_by_label("project").fill("dropped")
    data = page.evaluate_handle(
        "text => { const data = new DataTransfer(); data.items.add(new File([text], 'dropped.jsonl')); return data }",
        trace("dropped").decode(),
    )
    page.locator("#drop").dispatch_event("dragover", {"dataTransfer": data})
    expect(page.locator("#drop.over")).to_be_visible()
    page.locator("#drop").dispatch_event("drop", {"dataTransfer": data})
    expect(page.locator("#results tbody tr")).to_contain_text("dropped.jsonl")
    expect(page.locator("#progress")).to_have_text("1 file done.")


def test_a_large_file_becomes_a_job_whose_page_reaches_its_end(open_as_operator: Page, tmp_path: Path) -> None:
    page = open_as_operator
    large = tmp_path / "large.jsonl"
    filler = json.dumps({"kind": "user_turn", "step": 0, "content": "word " * 100_000})
    large.write_text(native_lines(1, "large") + (filler + "\n") * 45)
    assert large.stat().st_size > 20 * 2**20
    page.goto("/import/")
    page.get_by_label("project").fill("dropped")
    page.locator("input[type=file]").set_input_files(large)
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator("#results").get_by_role("link", name="job").click()
    expect(page.locator("h1")).to_contain_text("done", timeout=45_000)
    page.locator("main a").first.click()
    expect(page.locator("h1")).to_contain_text("large-0")
    page.goto("/jobs/")
    expect(page.locator("tbody tr").first).to_contain_text("done")
