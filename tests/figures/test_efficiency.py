"""The figures are valid, show what the values say, and show hostile names as text."""

from __future__ import annotations

import pytest

from harnesslab.core.efficiency.factors import View, identity, levers
from harnesslab.core.efficiency.faults import times
from harnesslab.core.efficiency.spending import spending, split
from harnesslab.core.efficiency.survival import buckets, survival
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.tool_uses import ToolUse
from harnesslab.figures.efficiency import levers_figure, spend_figure, split_figure, tools_figure
from harnesslab.figures.survival import solves_figure, survival_figure, times_figure
from harnesslab.figures.template import SERIES, plain
from tests.core.cells import cell
from tests.figures.drawing import TOKENS, drawn

HOSTILE = "<a href='javascript:alert(1)'>%{x}\x00\n</a>"
A = [cell("one", output=40, steps=2, model=3.0), cell("two", Outcome.STEP_CAP, output=60, steps=4)]
B = [cell(HOSTILE, output=20, steps=1, model=70.0, rollout=7), cell("two", Outcome.CRASH, output=5)]


def test_levers_show_log_ratios_with_changes_beside_them() -> None:
    found = levers(identity(A, View()), identity(B, View()))
    figure = levers_figure([(HOSTILE, found)])
    bars = drawn(figure).data[0]
    assert list(bars.x) == [bar.log for bar in (*found.factors, found.total)]
    assert bars.text[-1] == "−75.0 %"
    undefined = levers(identity(A, View()), identity([], View()))
    assert set(drawn(levers_figure([("B", undefined)])).data[0].text) == {"undefined"}


def test_spend_is_stacked_with_shares() -> None:
    figure = drawn(spend_figure([("A", spending(A, View())), ("B", spending(B, View()))], "output tokens"))
    assert [(part.name, list(part.x)) for part in figure.data] == [
        ("solved", [40, 20]),
        ("failed", [60, 0]),
        ("unscored", [0, 5]),
    ]
    assert figure.data[0].text == ("40 %", "80 %")


def test_kinds_of_tokens_are_stacked_without_counting_reasoning_or_cached_ones_twice() -> None:
    found = split([cell(input=100, cached=60, output=9, reasoning=4)])
    bars = drawn(split_figure([("A", found)])).data
    assert [(bar.name, bar.x[0]) for bar in bars] == [
        ("input, uncached", 40),
        ("input, cached", 60),
        ("output", 5),
        ("reasoning", 4),
    ]


def test_survival_and_solves_by_step() -> None:
    lines = drawn(survival_figure([("A", survival(A)), (HOSTILE, survival(B))])).data
    assert list(lines[0].y) == [1, 0.5, 0]
    assert lines[0].line.dash != lines[1].line.dash
    bars = drawn(solves_figure([("A", buckets(A, 1)), ("B", buckets(B, 1))])).data
    assert list(bars[0].y) == [0, 1, 0, 0]


@pytest.mark.parametrize("seconds", [True, False])
def test_tools_with_n_in_each_hover_and_cut_names_kept_apart(*, seconds: bool) -> None:
    use = {f"a very long name of a tool {number}": ToolUse(3, 0, 6.0, 3, 30, 3) for number in range(2)}
    bars = drawn(tools_figure([("A", use), ("B", {HOSTILE: ToolUse()})], seconds=seconds)).data[0]
    assert set(bars.x) == ({2.0} if seconds else {10.0})
    assert len(set(bars.y)) == 2
    assert all("n = 3" in said for said in bars.hovertext)


def test_times_stand_beside_their_budgets_and_a_point_opens_its_rollout() -> None:
    rows: list[tuple[str, Cell]] = [("A", item) for item in A] + [("B", item) for item in B]
    timed = [(letter, row) for letter, item in rows for row in times([item], {7: 60.0})]
    bars, marks = drawn(times_figure(timed)).data
    assert list(bars.x) == [70.0, 3.0]
    assert list(bars.customdata) == ["#7", "#1"]
    assert list(marks.x) == [60.0, None]
    assert times_figure([])["data"] == []


def test_names_are_only_text_and_every_series_has_a_colour() -> None:
    assert plain(HOSTILE, 100) == "&lt;a href='javascript:alert(1)'&gt;%{x} &lt;/a&gt;"
    assert {colour[4:] for colour in SERIES} <= TOKENS
    assert "<a" not in str(levers_figure([(HOSTILE, levers(identity(A, View()), identity(B, View())))]))
