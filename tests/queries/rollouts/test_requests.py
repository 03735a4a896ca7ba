"""Requests that were sent more than once: pages, answers, where they part, and what is not counted."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.trace.events import Fidelity
from harnesslab.queries.rollouts import requests
from harnesslab.queries.rollouts.requests import request_detail, request_page
from harnesslab.store.models import Rollout
from tests.recordings import changed, recording

pytestmark = pytest.mark.django_db


def stored(user: str, *answers: str, **fields: Any) -> list[Rollout]:
    """Store a rollout of one step for each answer to one request."""
    return [
        store_recording(recording([answer], user=user, trial=trial, **fields), None)
        for trial, answer in enumerate(answers)
    ]


def test_requests_with_most_answers_come_first_with_what_each_number_is_of() -> None:
    stored("steady", "ls", "ls", "ls")
    stored("torn", "ls", "cat x", "pwd")
    stored("once", "ls")
    page = request_page()
    assert [(row.sent, row.answers) for row in page.rows] == [(3, 3), (3, 1)]
    assert (page.repeated, page.unstable, page.rebuilt, page.next) == (2, 1, 0, None)
    assert [row.sent for row in request_page(unstable_only=True).rows] == [3]


def test_pages_of_requests_go_on_without_gaps_or_doubles_however_many_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "PAGE", 2)
    for number in range(7):
        stored(f"request {number}", "ls", "ls")
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = request_page(offset)
        seen += [row.digest for row in page.rows]
        offset = page.next
    assert (len(seen), len(set(seen))) == (7, 7)
    assert seen == sorted(seen)  # ties have an order of their own, which no plan of a database changes


@pytest.mark.parametrize("offset", [-1, 10**30])
def test_an_offset_outside_the_list_is_its_beginning_or_its_end(offset: int) -> None:
    stored("steady", "ls", "ls")
    page = request_page(offset)
    assert (len(page.rows), page.next) == ((1, None) if offset < 0 else (0, None))


def test_requests_that_an_importer_rebuilt_are_counted_beside() -> None:
    made = changed(recording(["ls"]), 9, fidelity=Fidelity.REBUILT)
    store_recording(made, None)
    page = request_page()
    assert (page.rows, page.repeated, page.rebuilt) == ([], 0, 1)


def test_a_request_that_failed_is_sent_but_has_no_answer() -> None:
    made = changed(recording(["ls"], user="flaky", trial=1), 1, error="reset", text=None, tool_calls=(), usage=None)
    (row,), failed = stored("flaky", "ls"), store_recording(made, None)
    assert failed.pk > row.pk
    (listed,) = request_page().rows
    detail = request_detail(listed.digest)
    assert (listed.sent, listed.answers) == (detail.sent, len(detail.answers)) == (2, 1)
    assert [call[0] for call in detail.answers[0].calls] == [row.pk]
    assert (detail.failed, detail.left_out) == (1, 0)


def test_of_very_many_calls_those_that_are_not_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_CALLS", 3)
    stored("busy", "ls", "ls", "cat", "ls", "ls")
    detail = request_detail(request_page().rows[0].digest)
    assert (detail.sent, detail.left_out, [answer.count for answer in detail.answers]) == (5, 2, [2, 1])


def test_answers_come_most_frequent_first_with_where_the_others_part() -> None:
    rows = stored("torn", "cat x", "ls", "ls")
    (listed,) = request_page().rows
    detail = request_detail(listed.digest)
    assert [(answer.count, answer.differs_at) for answer in detail.answers] == [(2, ""), (1, "word 3 of the text")]
    assert [call[0] for answer in detail.answers for call in answer.calls] == [rows[1].pk, rows[2].pk, rows[0].pk]
    assert sum(answer.count for answer in detail.answers) == detail.sent
    assert [role for role, *_ in detail.messages] == ["system", "user"]
    assert [name for name, _ in detail.settings] == ["temperature"]


def test_a_list_of_requests_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    for number in range(12):
        stored(f"request {number}", "ls", "cat")
    with django_assert_max_num_queries(8):
        assert len(request_page().rows) == 12
    digest = request_page().rows[0].digest
    with django_assert_max_num_queries(6):
        request_detail(digest)


def test_a_digest_of_no_request_is_one_sentence() -> None:
    with pytest.raises(NotFound, match="no such request"):
        request_detail("00" * 16)
    for digest in ("x", "\x00", "<b>", "abc"):
        with pytest.raises(InvalidValue, match="is no request digest"):
            request_detail(digest)
