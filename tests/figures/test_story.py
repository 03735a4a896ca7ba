"""The figures of stories and outcomes are valid and show what the values say."""

from __future__ import annotations

from harnesslab.core.measuring.cells import by_case
from harnesslab.core.measuring.transitions import transitions
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.training.story import Mark, Point, steps
from harnesslab.figures.outcomes import matrix_figure, transitions_figure
from harnesslab.figures.story import Spot, story_figure
from tests.core.cells import cell
from tests.figures.drawing import drawn

HOSTILE = "<a href='javascript:alert(1)'>%{x}\x00\n</a>"
TOLD = [
    (Mark.BASELINE, "a", 0.0),
    (Mark.REJECTED, "b", 1.0),
    (Mark.PROMOTED, "c", 2.0),
    (Mark.BASELINE, "c", 2.0),
    (Mark.RUNNING, "d", None),
]


def test_the_baseline_is_a_line_of_steps_with_a_gap_at_a_break_and_every_mark_opens_its_experiment() -> None:
    spots = [Spot(place, mark, value, [HOSTILE]) for place, (mark, _, value) in enumerate(TOLD)]
    points = [Point(mark, revision, "", value, 9) for mark, revision, value in TOLD]
    figure = story_figure(spots, steps(points), HOSTILE)
    found = {part.name: part for part in drawn(figure).data}
    assert found["baseline measured again"].x == (3,)
    line = drawn(figure).data[0]
    assert list(line.y) == [0, 2, 2, None, 2, 2]
    assert list(found["rejected"].customdata) == ["@1"]
    symbols = [part.marker.symbol for part in found.values() if part.marker.symbol]
    assert len(set(symbols)) == len(symbols) >= 3
    assert "<a" not in str(figure)
    assert drawn(figure).layout.annotations[0].text == "baseline 2/9"


def test_a_story_without_values_draws_nothing() -> None:
    assert story_figure([Spot(1, Mark.UNDECIDED, None, [])], [], "x")["data"] == []


def test_transitions_flow_from_each_outcome_of_the_baseline() -> None:
    before = by_case([cell("a"), cell(HOSTILE, Outcome.TIMEOUT)])
    after = by_case([cell("a"), cell(HOSTILE)])
    figure = transitions_figure(transitions(before, after))
    flow = drawn(figure).data[0]
    assert list(flow.link.value) == [1, 1]
    assert list(flow.node.label) == ["solved 1", "timeout 1", "solved 2"]
    assert "<a" not in str(figure)
    assert transitions_figure([])["data"] == []


def test_cells_of_the_matrix_open_their_rollouts_and_large_ones_bear_no_text() -> None:
    heat = drawn(matrix_figure(["A", "B"], [HOSTILE], [[("solved", 7), None]])).data[0]
    assert heat.customdata[0][0] == "#7"
    assert (heat.z[0][0], heat.text[0][0], heat.text[0][1]) == (4, "●", "")
    many = drawn(matrix_figure(["A"] * 100, ["c"] * 100, [[("crash", 1)] * 100] * 100)).data[0]
    assert (many.texttemplate, many.text[0][0]) == (None, "crash")
    assert min(many.xgap, many.ygap) > 0  # without a gap Plotly sets an inline style, which the policy forbids
    assert len(set(many.x)) == len(set(many.y)) == 100
