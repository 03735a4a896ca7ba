"""Each page shows what is there, in a fixed number of queries, and escapes whatever a trace holds."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.running.rollout import Outcome
from harnesslab.formats import bundle
from harnesslab.store.models import StoredPath
from tests.pages.conftest import Stored
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        answer = client.get(address)
    assert answer.status_code == 200, answer.content[:300]
    return len(captured)


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/rollouts/",
        "/rollouts/?by=case",
        "/requests/",
        "/import/",
        "/jobs/",
        "/account/",
        "/rollouts/values/?facet=case",
    ],
)
def test_a_page_opens_without_any_data(as_viewer: Client, address: str) -> None:
    assert as_viewer.get(address).status_code == 200


@pytest.mark.parametrize(
    ("address", "most"),
    [("/", 10), ("/rollouts/", 7), ("/rollouts/?by=case", 8), ("/rollouts/values/?facet=model", 4), ("/jobs/", 7)],
)
def test_more_rollouts_take_no_more_queries(as_viewer: Client, stored: Stored, address: str, most: int) -> None:
    few = queries(as_viewer, address)
    for trial in range(3, 15):
        store_recording(recording(trial=trial, case=f"case-{trial}"), None)
    assert queries(as_viewer, address) == few
    assert few <= most


def test_more_requests_and_answers_take_no_more_queries(as_viewer: Client, stored: Stored) -> None:
    few = queries(as_viewer, "/requests/")
    page = as_viewer.get("/requests/").content.decode()
    digest = re.search(r"/requests/([0-9a-f]{32})/", page)
    assert digest is not None
    alone = queries(as_viewer, f"/requests/{digest.group(1)}/")
    for trial in range(3, 12):
        store_recording(recording(["ls", f"answer {trial}", "then"], trial=trial), None)
        store_recording(recording(["ls", f"answer {trial}", "then"], trial=trial, user=f"task {trial}"), None)
        store_recording(recording(["ls", f"answer {trial}"], trial=trial, user=f"task {trial}"), None)
    assert queries(as_viewer, "/requests/") == few <= 12
    assert queries(as_viewer, f"/requests/{digest.group(1)}/") == alone <= 12


def test_a_rollout_opens_in_a_fixed_number_of_queries(as_viewer: Client, stored: Stored) -> None:
    long = store_recording(recording([f"command {number}" for number in range(60)], trial=9), None)
    short = queries(as_viewer, f"/rollouts/{stored.first.pk}/")
    assert queries(as_viewer, f"/rollouts/{long.pk}/") == short
    assert short <= 14


@pytest.mark.parametrize(("part", "most"), [("", 20), ("row/", 14), ("rows/", 12)])
def test_a_comparison_and_its_parts_open_in_a_fixed_number_of_queries(
    as_viewer: Client, stored: Stored, django_assert_max_num_queries: Any, part: str, most: int
) -> None:
    address = f"/compare/{part}?a={stored.first.pk}&b={stored.other.pk}"
    assert as_viewer.get(address.replace(part, "")).status_code == 200
    with django_assert_max_num_queries(most):
        assert as_viewer.get(address).status_code == 200


@pytest.mark.parametrize(("part", "levels"), [("", 6), ("row/", 2), ("rows/", 2)])
def test_a_comparison_reads_each_kept_path_once_and_only_those_it_takes(
    as_viewer: Client, stored: Stored, monkeypatch: pytest.MonkeyPatch, part: str, levels: int
) -> None:
    address = f"/compare/{part}?a={stored.first.pk}&b={stored.other.pk}"
    assert as_viewer.get(address).status_code == 200
    opened: list[tuple[int, str]] = []
    load = StoredPath.from_db

    def noted(_: type[StoredPath], *row: Any) -> StoredPath:
        made = load(*row)
        opened.append((made.rollout_id, made.contract))
        return made

    monkeypatch.setattr(StoredPath, "from_db", classmethod(noted))
    assert as_viewer.get(address).status_code == 200
    assert len(opened) == len(set(opened)) == 2 * levels


def test_the_list_says_how_many_pass_the_filters(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get("/rollouts/?outcome=solved&project=tests").content.decode()
    assert "<b>2</b> rollouts under these filters" in re.sub(r"\s+", " ", page)
    assert "case-2" not in page


def test_groups_show_rate_with_denominator_and_distinct_paths(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get("/rollouts/?by=case&case=case-1").content.decode()
    assert "<b>2/3</b>" in page
    assert "2 distinct paths over 3 trials" in page


def test_a_crash_is_no_sample_and_is_counted_beside(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get("/rollouts/?by=case&case=case-2").content.decode()
    assert "no scored trial" in page
    assert "not counted: 1 crash" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?outcome=nonsense", "no such outcome"),
        ("?sort=up", "no such sort"),
        ("?prefix=x", "no prefix"),
        ("?after=abc", "no position"),
    ],
)
def test_a_wrong_filter_gets_one_sentence(as_viewer: Client, query: str, said: str) -> None:
    answer = as_viewer.get(f"/rollouts/{query}")
    assert answer.status_code == 400
    assert said in answer.content.decode().lower()


def test_paging_shows_every_rollout_once(as_viewer: Client, monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr("harnesslab.queries.rollouts.listing.PAGE", 4)
    monkeypatch.setattr("harnesslab.queries.rollouts.listing.rollout_page.__defaults__", ("", 4))
    ids = {store_recording(recording(["x"] * (1 + trial % 3), trial=trial), None).pk for trial in range(11)}
    for sort in ("newest", "oldest", "most-steps", "fewest-steps", "most-tokens", "longest"):
        seen: list[int] = []
        after = ""
        while True:
            page = as_viewer.get(f"/api/v1/rollouts?sort={sort}&after={after}").json()
            seen += [row["id"] for row in page["rows"]]
            after = page["next"]
            if not after:
                break
        assert sorted(seen) == sorted(ids), sort


def test_same_prefix_finds_the_trials_that_went_the_same_way(as_viewer: Client, stored: Stored) -> None:
    def found(count: int) -> set[int]:
        page = as_viewer.get(f"/api/v1/rollouts?prefix={stored.first.pk}@{count}").json()
        return {row["id"] for row in page["rows"]}

    assert found(3) == {stored.first.pk, stored.same.pk, stored.other.pk}
    assert found(4) == {stored.first.pk, stored.same.pk}


def test_a_step_has_an_address(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get(f"/rollouts/{stored.first.pk}/?step=2").content.decode()
    assert "Step 2 · model → run" in page
    assert "4 messages · 2 unchanged · 2 new" in page


def test_hostile_content_is_shown_as_text(as_viewer: Client, db: None) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    row = store_recording(
        recording(
            [attack, "b"],
            case=attack,
            results={0: attack},
            user=attack,
            tags=(attack,),
            model=attack,
            facts={"x": attack},
        ),
        None,
    )
    other = store_recording(recording([attack, "c"], case=attack, results={0: attack}, user=attack, trial=1), None)
    addresses = [
        "/", "/rollouts/", "/rollouts/?by=case", f"/rollouts/{row.pk}/", f"/rollouts/{row.pk}/events/3/", "/requests/",
        f"/compare/?a={row.pk}&b={other.pk}", f"/compare/row/?a={row.pk}&b={other.pk}&row=2",
    ]  # fmt: skip
    for address in addresses:
        page = as_viewer.get(address).content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address


@pytest.mark.parametrize("odd", ["a\x00b", "\udcb2 lone", "🙂\ud83d", "\x1b[31mred\x1b[0m"])
def test_odd_text_is_shown_and_downloaded(as_viewer: Client, db: None, odd: str) -> None:
    row = store_recording(recording(["one", "two"], results={0: odd}), None)
    other = store_recording(recording(["one", "two"], results={0: odd + "!"}, trial=1), None)
    index = 3
    for address in (
        f"/rollouts/{row.pk}/",
        f"/rollouts/{row.pk}/events/{index}/",
        f"/rollouts/{row.pk}/events/{index}/part/?name=result",
        f"/rollouts/{row.pk}/bundle.zip",
        f"/compare/?a={row.pk}&b={other.pk}",
        f"/api/v1/rollouts/{row.pk}/events/{index}",
        f"/api/v1/comparisons?a={row.pk}&b={other.pk}",
    ):
        assert as_viewer.get(address).status_code == 200, address


def test_the_comparison_begins_with_its_sentence(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get(f"/compare/?a={stored.first.pk}&b={stored.other.pk}").content.decode()
    sentence = re.search(r'<h1 id="sentence">(.*?)</h1>', page, re.DOTALL)
    assert sentence is not None
    assert "Identical for 1 step" in sentence.group(1)


def test_identical_rollouts_are_said_to_be(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get(f"/compare/?a={stored.first.pk}&b={stored.same.pk}").content.decode()
    assert "Identical in all 3 steps" in page


def test_a_level_that_is_not_recorded_is_not_comparable(as_viewer: Client, stored: Stored) -> None:
    answer = as_viewer.get(f"/compare/?a={stored.first.pk}&b={stored.same.pk}&level=token-ids")
    assert answer.status_code == 422
    assert "does not record token-ids" in answer.content.decode()


def test_a_reviewer_overrides_the_cause_with_a_reason(as_operator: Client, stored: Stored) -> None:
    address = f"a={stored.first.pk}&b={stored.other.pk}"
    as_operator.post(f"/compare/override/?{address}", {"cause": "environment", "reason": "the disk was full"})
    page = as_operator.get(f"/compare/?{address}").content.decode()
    assert "olga found the cause to be <b>environment</b>: the disk was full" in page


def test_a_note_stands_at_its_step(as_operator: Client, stored: Stored) -> None:
    as_operator.post(f"/rollouts/{stored.first.pk}/notes/", {"text": "look here", "step": "1"})
    assert "look here" in as_operator.get(f"/rollouts/{stored.first.pk}/?step=2").content.decode()
    assert "look here" not in as_operator.get(f"/rollouts/{stored.first.pk}/?step=1").content.decode()


def test_a_view_is_saved_and_forgotten(as_viewer: Client, stored: Stored) -> None:
    as_viewer.post("/rollouts/views/", {"name": "mine", "query": "outcome=solved"})
    assert ">mine</a>" in as_viewer.get("/rollouts/").content.decode()
    as_viewer.post("/rollouts/views/", {"name": "mine", "query": ""})
    assert ">mine</a>" not in as_viewer.get("/rollouts/").content.decode()


def test_deleting_says_so_and_is_final(as_admin: Client, stored: Stored) -> None:
    answer = as_admin.post(f"/rollouts/{stored.first.pk}/delete/", {"reason": "test"}, follow=True)
    assert "was deleted" in answer.content.decode()
    assert as_admin.get(f"/rollouts/{stored.first.pk}/").status_code == 404


def test_requests_show_one_request_with_several_answers(as_viewer: Client, stored: Stored) -> None:
    page = as_viewer.get("/requests/").content.decode()
    assert "<b>1</b> of 3 requests" in page
    digest = re.search(r"/requests/([0-9a-f]{32})/", page)
    assert digest is not None
    detail = as_viewer.get(f"/requests/{digest.group(1)}/").content.decode()
    assert "answered in <b>2</b> ways" in detail


def test_an_unknown_outcome_is_no_failure(as_viewer: Client, db: None) -> None:
    store_recording(recording(outcome=Outcome.UNKNOWN, reward=None), None)
    assert "no verdict" in as_viewer.get("/rollouts/").content.decode()


def test_a_bundle_takes_the_comparison_along(as_viewer: Client, stored: Stored) -> None:
    data = as_viewer.get(f"/rollouts/{stored.first.pk}/bundle.zip?with={stored.other.pk}").content
    name = f"reports/comparison-{stored.first.pk}-{stored.other.pk}.json"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        report = json.loads(archive.read(name))
    assert report["sentence"].startswith("Identical for 1 step")
    assert bundle.verify(data).events == stored.first.events


def test_a_bundle_with_nothing_that_is_a_rollout_is_refused(as_viewer: Client, stored: Stored) -> None:
    assert as_viewer.get(f"/rollouts/{stored.first.pk}/bundle.zip?with=x").status_code == 400
    assert as_viewer.get(f"/rollouts/{stored.first.pk}/bundle.zip?with=999").status_code == 404
