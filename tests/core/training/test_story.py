"""The story: what each experiment is in it, the steps of the baseline, and where its line breaks."""

from __future__ import annotations

import pytest

from harnesslab.core.training.story import Mark, Point, Turn, common_panel, leading, mark_of, numbers, steps


def point(mark: Mark, revision: str, value: float | None, *, parent: str = "", of: int = 9) -> Point:
    return Point(mark, revision, parent, value, of)


@pytest.mark.parametrize(
    ("kind", "verdict", "against", "mark"),
    [
        ("baseline", "", None, Mark.BASELINE),
        ("baseline", "promoted", None, Mark.BASELINE),
        ("baseline", "promoted", "old", Mark.PROMOTED),
        ("baseline", "", "new", Mark.UNCHANGED),
        ("baseline", "", "old", Mark.BASELINE),
        ("candidate", "rejected", "old", Mark.REJECTED),
        ("candidate", "invalid_infra", "old", Mark.INVALID),
        ("candidate", "", "old", Mark.UNDECIDED),
    ],
)
def test_what_was_decided_against_a_baseline_is_a_candidate(
    kind: str, verdict: str, against: str | None, mark: Mark
) -> None:
    assert mark_of(kind, verdict, against=against, revision="new", running=False) is mark


def test_a_promotion_is_a_step_and_the_same_revision_measured_again_is_a_break() -> None:
    told = [
        point(Mark.BASELINE, "a", 1, of=11),
        point(Mark.REJECTED, "b", 9, parent="a"),
        point(Mark.PROMOTED, "c", 3, parent="a"),
        point(Mark.UNCHANGED, "c", 5),
        point(Mark.BASELINE, "c", 2, of=11),
    ]
    found = steps(told)
    assert [(each.place, each.value, each.turn) for each in found] == [
        (0, 1, Turn.START),
        (2, 3, Turn.PROMOTION),
        (4, 2, Turn.AGAIN),
    ]
    assert [each.breaks for each in found] == [False, False, True]


def test_a_baseline_that_follows_from_nothing_or_solves_less_is_a_reset() -> None:
    first = point(Mark.BASELINE, "a", 4)
    assert steps([first, point(Mark.BASELINE, "b", 4)])[1].turn is Turn.RESET
    assert steps([first, point(Mark.BASELINE, "b", 3, parent="a")])[1].turn is Turn.RESET
    assert steps([first, point(Mark.BASELINE, "b", 4, parent="a")])[1].turn is Turn.PROMOTION
    assert steps([first, point(Mark.BASELINE, "b", 3, parent="a")], falls=False)[1].turn is Turn.PROMOTION


def test_the_common_panel_is_what_all_measured() -> None:
    assert common_panel([["a", "b"], ["b", "c"]]) == {"b"}
    assert common_panel([]) == frozenset()


def test_metrics_are_the_finite_numbers_however_they_are_written() -> None:
    stated = {"a": "2.5", "b": 3, "c": "nan", "d": "fast", "e": True, "f": None, "g": "1" * 400 + "e9"}
    assert numbers(stated) == {"a": 2.5, "b": 3.0}


def test_the_leading_metric_is_the_one_that_promotions_moved_one_way() -> None:
    marks = [Mark.BASELINE, Mark.PROMOTED, Mark.REJECTED, Mark.PROMOTED]
    series: dict[str, list[float | None]] = {
        "memory": [1.0, 2.0, 9.0, 1.0],
        "loss": [3.0, 2.0, 7.0, 1.0],
        "none": [None] * 4,
    }
    assert leading(series, marks) == "loss"
    assert leading({}, marks) == ""
