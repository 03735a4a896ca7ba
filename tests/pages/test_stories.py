"""The story of a project: its sentence, its lineage, the candidate that is looked at, CSV and JSON."""

from __future__ import annotations

import csv
import io
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.actions.projects.memos import keep_memo
from harnesslab.store.models import Project
from harnesslab.store.text import frozen, storable
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, lineage, measured

pytestmark = pytest.mark.django_db


def page(client: Client, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.content[:500]
    return unescape(answer.content.decode())


def address(rest: str = "") -> str:
    return f"/projects/{Project.objects.get(name='tests').pk}/{rest}"


def test_the_sentence_says_what_the_candidates_made_of_the_baseline(as_viewer: Client) -> None:
    lineage()
    text = page(as_viewer, address())
    assert "</b>: 2 candidates took the baseline from 1/3 to 2/3 cases solved; 1 promoted, 1 rejected." in text
    assert "One case (odd) is excluded: it forks." in text
    assert "Measured again unchanged: 1 of 2 cases (two) flipped by nothing." in text
    assert "1 never, 2 sometimes, 0 always solved" in text
    assert "lost one" in text
    last = measured("fewer", {"one": SOLVED}, kind="baseline", revision="c" * 40)
    assert "from 1/3 to 1/1 cases solved, on the 1 case common to all from 1 to 1" in page(as_viewer, address())
    last.certification = frozen({"odd": {"verdict": "deterministic"}, "one": {"verdict": "no_chain"}})
    last.save()
    assert "One case (one) is excluded: its commands can't be run again." in page(as_viewer, address())
    assert '<script>alert("1")' not in as_viewer.get(address()).content.decode()


def test_the_line_is_told_step_by_step_in_json(as_viewer: Client) -> None:
    rows = lineage()
    found = as_viewer.get(f"/api/v1{address('story')}".replace("//", "/")).json()
    assert [(step["place"], step["value"], step["turn"]) for step in found["steps"]] == [
        (0, 1.0, "start"),
        (2, 2.0, "promotion"),
        (3, 2.0, "again"),
    ]
    assert [row["mark"] for row in found["rows"]] == ["baseline", "rejected", "promoted", "baseline", "unchanged"]
    assert found["common"] == ["one", "two"]
    assert [row["common"] for row in found["rows"]] == [1, 0, 2, 2, 1]
    assert [row["epoch"] for row in found["rows"]] == [None, 0, 1, None, None]
    assert (found["rows"][2]["delta"], found["rows"][2]["gained"]) == (1, ["two"])
    common = as_viewer.get(f"/api/v1{address('story')}?by=common").json()
    assert [row["value"] for row in common["rows"]] == [1.0, 0.0, 2.0, 2.0, 1.0]
    assert {step["of"] for step in common["steps"]} == {2}
    assert common["rows"][0]["id"] == rows[0].pk


def test_the_selected_candidate_comes_alone_to_htmx(as_viewer: Client) -> None:
    rows = lineage()
    keep_memo(rows[1].project, "# Notes\n<script>x</script>\n[go](javascript:alert)", after=rows[1])
    text = as_viewer.get(address(f"?c={rows[1].pk}"), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in text
    assert "Regressions: one, " in text
    assert "an imported project brings no repository" in unescape(text)
    assert "<h3>Notes</h3>" in text
    assert "<script>" not in text
    assert 'href="javascript' not in text
    assert "▲</i> promoted" in page(as_viewer, address("?c=999"))


def test_a_ledger_is_told_by_its_own_metric(as_viewer: Client) -> None:
    for name, verdict, loss in (("a", "promoted", "3"), ("b", "rejected", "4"), ("c", "promoted", "2")):
        measured(name, {}, verdict=verdict, metrics={"loss": loss, HOSTILE: "1"}, revision=name)
    text = page(as_viewer, address())
    assert "3 candidates took the baseline from 3 to 2 in loss; 2 promoted, 1 rejected." in text
    odd = storable(HOSTILE)
    told = as_viewer.get(address(), {"by": f"metric:{odd}"}).content.decode()
    assert f"took the baseline from 1 to 1 in {odd}" in unescape(told)


def test_tables_download_with_names_made_harmless(as_viewer: Client) -> None:
    lineage()
    answer = as_viewer.get(address("?format=csv&table=lineage"))
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert rows[1][0] == "1"
    assert [row[rows[0].index("decision")] for row in rows[1:]] == ["rejected", "promoted"]
    for name in ("story", "cases"):
        assert as_viewer.get(address(f"?format=csv&table={name}")).status_code == 200
    assert as_viewer.get(address("?format=csv&table=none")).status_code == 404


def test_more_experiments_take_no_more_queries(as_viewer: Client) -> None:
    lineage()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(as_viewer, address())
        return len(captured)

    few = queries()
    for number in range(6):
        measured(f"more {number}", {"one": SOLVED, "two": FAILED}, verdict="rejected", baseline="base")
    assert queries() == few <= 14


def test_a_project_is_found_by_its_name_and_an_empty_one_says_what_to_do(as_viewer: Client) -> None:
    Project.objects.create(name="new & empty")
    answer = as_viewer.get("/projects/?name=new %26 empty")
    assert answer.status_code == 302
    assert "harnesslab train" in page(as_viewer, answer["Location"])
    assert as_viewer.get("/projects/?name=none").status_code == 404
    assert as_viewer.get(answer["Location"] + "?by=metric:none").status_code == 400
    assert as_viewer.get("/projects/999/").status_code == as_viewer.get("/api/v1/projects/999/story").status_code == 404


def test_the_memo_shows_versions_what_changed_and_that_it_is_stale(as_viewer: Client) -> None:
    rows = lineage()
    first = keep_memo(rows[0].project, "# Memo\nkept\nold", after=rows[0])
    keep_memo(rows[0].project, "# Memo\nkept\nnew <b>x</b>\n![p](https://e.org/p.png)", after=rows[2])
    text = as_viewer.get(address("memo/")).content.decode()
    assert "Version <b>2</b> of 2" in text
    assert "Stale: 2 experiments are newer" in text
    assert "new &lt;b&gt;x&lt;/b&gt;" in text
    assert "<img" not in text
    assert '<div class="removed">' in text
    assert "Version <b>1</b> of 2" in page(as_viewer, address(f"memo/?v={first.pk}"))
    assert as_viewer.get(address("memo/?v=999")).status_code == 404
