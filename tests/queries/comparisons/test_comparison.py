"""Two stored rollouts beside each other: windows of rows, one row in full, the strip, tokens, and findings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.accounts.models import User
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.errors import NotComparable, NotFound
from harnesslab.core.trace.events import ModelCall
from harnesslab.queries.comparisons.comparison import (
    aligned,
    compared,
    first_difference_row,
    first_divergence,
    level_titles,
    overrides_of,
    readers_of,
    row_window,
)
from harnesslab.queries.comparisons.rows import json_or_none, row_detail
from harnesslab.queries.comparisons.strip import strip
from harnesslab.queries.comparisons.token_differences import token_difference
from harnesslab.store.models import CauseOverride
from tests.hostile import TEXTS
from tests.recordings import COMMANDS, changed, recording

pytestmark = pytest.mark.django_db
TEXT = Contract.parse("text")


def stored(*commands: str, **fields: Any) -> int:
    return store_recording(recording(commands or COMMANDS, **fields), None).pk


def test_equal_rollouts_are_identical_with_no_row_that_differs() -> None:
    a, b = stored(), stored(trial=1)
    found = compared(readers_of(a, b), TEXT)
    assert (found.result.identical, found.result.first_divergence, found.result.outcome_changed) == (True, None, False)
    assert first_divergence(readers_of(a, b), TEXT) is None
    assert first_difference_row(found.rows) is None
    assert row_window(found, 0, only_differences=True).rows == []
    assert {cell.relation for cell in strip(found)} == {"equal"}


def test_counts_of_rows_add_up_to_all_of_them() -> None:
    a, b = stored("ls", "cat a", "cat b", "cat c"), stored("ls", "cat x", "cat c", "pwd")
    found = compared(readers_of(a, b), TEXT)
    counts = {name: count for name, count in found.result.counts.items() if name != "edits"}
    assert sum(counts.values()) == len(found.rows) == row_window(found, 0).total
    assert found.result.steps == (4, 4)
    assert found.result.counts["only_a"] + found.result.counts["only_b"] + found.result.counts["changed"] > 0
    parted = first_divergence(readers_of(a, b), TEXT)
    assert parted is not None
    assert found.result.first_divergence is not None
    assert (parted.step, parted.cause.value) == (
        found.result.first_divergence.step,
        found.result.first_divergence.cause,
    )


@pytest.mark.parametrize("only_differences", [False, True])
@pytest.mark.parametrize("size", [1, 3, 160])
def test_windows_of_rows_follow_each_other_without_a_gap_or_a_repeat(only_differences: bool, size: int) -> None:
    found = aligned(readers_of(stored("ls", "a", "b", "c"), stored("ls", "x", "b", "y")), TEXT)
    every = [row.number for row in row_window(found, 0, only_differences=only_differences).rows]
    seen: list[int] = []
    start: int | None = 0
    while start is not None:
        window = row_window(found, start, only_differences=only_differences, size=size)
        seen += [row.number for row in window.rows]
        start = window.after
    assert seen == every
    assert (len(every) == len(found.rows)) is not only_differences
    before = row_window(found, every[-1], only_differences=only_differences, size=size).before
    assert before is None or before in every
    assert row_window(found, 10**9, only_differences=only_differences).rows == []


def test_each_step_of_the_strip_begins_where_the_last_one_ended() -> None:
    found = aligned(readers_of(stored("ls", "a", "b"), stored("ls", "x", "b")), TEXT)
    cells = strip(found)
    assert [cell.start for cell in cells] == sorted({cell.start for cell in cells})
    assert cells[0].start == 0
    assert all(found.rows[cell.row].relation.value == cell.relation for cell in cells)


def test_rows_that_differ_lead_to_each_other_both_ways() -> None:
    found = compared(readers_of(stored("ls", "a", "b"), stored("ls", "x", "y")), TEXT)
    details = [row_detail(found, number) for number in range(len(found.rows))]
    differing = [detail.number for detail in details if detail.place is not None]
    assert {detail.differences for detail in details} == {len(differing)}
    assert [details[number].place for number in differing] == list(range(len(differing)))
    for detail in details:
        assert detail.before == max((n for n in differing if n < detail.number), default=None)
        assert detail.after == min((n for n in differing if n > detail.number), default=None)
    with pytest.raises(IndexError):
        row_detail(found, len(found.rows))


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_compared_as_text_and_makes_json(text: str) -> None:
    a, b = stored("ls", results={0: text}), stored("ls", results={0: f"{text} more"}, trial=1)
    found = compared(readers_of(a, b), TEXT)
    assert json.loads(found.result.model_dump_json())["identical"] is False
    number = first_difference_row(found.rows)
    assert number is not None
    detail = row_detail(found, number)
    assert detail.pairs
    assert json.loads(detail.model_dump_json())["number"] == number


def test_a_level_whose_record_is_missing_is_not_comparable_rather_than_different() -> None:
    a, b = stored(), stored("ls", trial=1)
    with pytest.raises(NotComparable):
        compared(readers_of(a, b), Contract.parse("token-ids"))
    ladder = compared(readers_of(a, b), TEXT).result.ladder
    assert ladder["token-ids"] not in ("different", "equal")
    assert list(ladder) == [name for name, _ in level_titles()]


def test_a_side_that_is_not_there_is_one_sentence() -> None:
    a = stored()
    for pair in ((a, 999), (999, a)):
        with pytest.raises(NotFound, match="there is no rollout 999"):
            readers_of(*pair)


def test_tokens_part_where_their_ids_do_and_unrecorded_ones_say_nothing() -> None:
    one = ModelCall(token_ids=(1, 2, 3, 4), logprobs=(-0.1, -0.2, -0.3, -0.4))
    two = ModelCall(token_ids=(1, 2, 9), logprobs=(-0.1, -0.2, -0.9))
    found = token_difference(one, two)
    assert found is not None
    assert (found.first, found.counts, found.by_probability, found.left_out) == (2, (4, 3), False, 0)
    assert [(row.position, row.same, row.b is None) for row in found.rows][2:] == [(2, False, False), (3, False, True)]
    near = token_difference(one, ModelCall(token_ids=(1, 2, 3, 4), logprobs=(-0.1, -0.25, -0.3, -0.4)))
    assert near is not None
    assert (near.first, near.by_probability) == (1, True)
    assert token_difference(one, one) is None
    assert token_difference(one, ModelCall()) is None


def test_the_latest_finding_of_a_pair_counts_in_either_order_and_older_rules_keep_theirs(operator: User) -> None:
    a, b, c = stored(), stored("ls", trial=1), stored("pwd", trial=2)
    contract = Contract.parse("text")

    def finding(cause: str, key: str, one: int = a, two: int = b) -> None:
        CauseOverride.objects.create(a_id=one, b_id=two, contract=key, cause=cause, reason="seen", author=operator)

    finding("timing", contract.key)
    finding("sampling", contract.key, b, a)
    finding("infra", contract.key, a, c)
    for one, two in ((a, b), (b, a)):
        found, earlier = overrides_of(one, two, contract)
        assert found is not None
        assert (found.cause, found.author, earlier) == ("sampling", "olga", [])
    assert overrides_of(b, c, contract) == (None, [])


def test_a_row_takes_no_more_queries_in_a_long_comparison(django_assert_max_num_queries: Any) -> None:
    few = compared(readers_of(stored("ls", "a"), stored("ls", "b")), TEXT)
    many = compared(readers_of(stored(*map(str, range(60))), stored(*map(str, range(30, 90)))), TEXT)
    for found in (few, many):
        number = first_difference_row(found.rows)
        assert number is not None
        with django_assert_max_num_queries(6):
            row_detail(found, number)


def test_answers_that_failed_differ_from_those_that_did_not() -> None:
    failed = changed(recording(trial=1), 1, error="reset", text=None, tool_calls=())
    found = compared(readers_of(stored(), store_recording(failed, None).pk), TEXT)
    rows = row_window(found, 0, only_differences=True).rows
    assert any(row.b is not None and row.b.failed for row in rows)


@pytest.mark.parametrize(("text", "value"), [("[1]", [1]), ("{", None), ("plain", None), ('{"a": 1}', {"a": 1})])
def test_text_is_json_where_it_is_an_object_or_a_list(text: str, value: object) -> None:
    assert json_or_none(text) == value


def test_texts_that_part_after_their_previews_are_no_equal_ones() -> None:
    long = "line\n" * 2_000
    a = stored("ls", results={0: f"{long}one{long}"})
    b = stored("ls", results={0: f"{long}two{long}"}, trial=1)
    found = aligned(readers_of(a, b), TEXT)
    first = first_difference_row(found.rows)
    assert first is not None
    detail = row_detail(found, first)
    (pair,) = (each for each in detail.pairs if each.title.lower().startswith("result"))
    assert not pair.equal
    assert {side for side, text in pair.spans if "one" in text or "two" in text} == {"a", "b"}
    assert any("equal characters" in text for side, text in pair.spans if side == "equal")
    same = row_detail(aligned(readers_of(a, a), TEXT), first)
    assert not same.pairs
