"""The figure of a project's story: the baseline as a line of steps, every experiment as a mark that opens it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harnesslab.core.training.story import Mark, Step, Turn
from harnesslab.figures.template import figure, plain

LABELLED = 30
"""Up to so many experiments, promotions say beside their mark what they gained."""
TICKS = 24
GAP = 0.4
"""How much of the line a break leaves out."""
_MARKS: dict[Mark, tuple[str, str, str, int]] = {
    Mark.BASELINE: ("baseline", "circle", "var:accent", 5),
    Mark.UNCHANGED: ("measured again unchanged", "square-open", "var:accent", 9),
    Mark.PROMOTED: ("promoted", "triangle-up", "var:good", 12),
    Mark.REJECTED: ("rejected", "triangle-down-open", "var:bad", 10),
    Mark.INVALID: ("not measurable", "diamond-open-dot", "var:doubt", 11),
    Mark.UNDECIDED: ("without a decision", "x-thin-open", "var:none", 8),
    Mark.RUNNING: ("running", "circle-open", "var:doubt", 9),
}
_TURNS = {Turn.AGAIN: "measured again", Turn.RESET: "reset"}


@dataclass(frozen=True, slots=True)
class Spot:
    """One experiment as it is drawn."""

    id: int
    mark: Mark
    value: float | None
    lines: Sequence[str]
    """What the hover says."""
    label: str = ""


def story_figure(spots: Sequence[Spot], steps: Sequence[Step], unit: str) -> dict[str, Any]:
    """Draw the story; empty where no experiment has a value."""
    shown = [(place, spot) for place, spot in enumerate(spots) if spot.value is not None]
    if not shown:
        return figure([], height=0, x={}, y={})
    data = [*_baseline(steps, len(spots)), *_breaks(steps)]
    data += [_marks(mark, [each for each in shown if each[1].mark is mark], len(spots)) for mark in _MARKS]
    end = _end(steps, len(spots))
    x: dict[str, Any] = {
        "title": "experiments in the order in which they were measured",
        "range": [-0.6, len(spots) - 0.1],
    }
    ticks = list(range(0, len(spots), max(1, -(-len(spots) // TICKS))))
    x |= {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [str(place + 1) for place in ticks],
        "showgrid": False,
        "zeroline": False,
    }
    y: dict[str, Any] = {"title": plain(unit, 60), "zeroline": False}
    whole = all(float(spot.value or 0).is_integer() for _, spot in shown)
    top = max(spot.value or 0 for _, spot in shown)
    if whole and 0 <= top <= 20:
        y |= {"dtick": 1 if top <= 8 else 2, "range": [-0.5, top + 0.8]}
    drawn = [each for each in data if each["x"]]
    return figure(drawn, height=360, x=x, y=y, showlegend=True, annotations=end)


def _baseline(steps: Sequence[Step], count: int) -> list[dict[str, Any]]:
    """Draw the line; a break leaves a gap in it."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, step in enumerate(steps):
        if step.breaks:
            x, y = [*x, step.place - GAP, None], [*y, steps[place - 1].value if place else None, None]
        x, y = [*x, step.place], [*y, step.value]
    if steps:
        x, y = [*x, count - 0.4], [*y, steps[-1].value]
    line = {"shape": "hv", "color": "var:accent", "width": 2}
    return [{"type": "scatter", "mode": "lines", "name": "baseline", "x": x, "y": y, "line": line, "hoverinfo": "skip"}]


def _breaks(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Draw breaks as thin ticks through the line: measured again, or reset."""
    drawn = []
    for turn, symbol in ((Turn.AGAIN, "line-ns-open"), (Turn.RESET, "x-thin-open")):
        found = [step for step in steps if step.turn is turn]
        drawn.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"baseline {_TURNS[turn]}",
                "x": [step.place for step in found],
                "y": [step.value for step in found],
                "marker": {
                    "symbol": symbol,
                    "size": 12,
                    "color": "var:accent",
                    "line": {"width": 2, "color": "var:accent"},
                },
                "hoverinfo": "skip",
            }
        )
    return drawn


def _marks(mark: Mark, found: Sequence[tuple[int, Spot]], count: int) -> dict[str, Any]:
    name, symbol, colour, size = _MARKS[mark]
    drawn: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "showlegend": mark is not Mark.BASELINE,
        "x": [place for place, _ in found],
        "y": [spot.value for _, spot in found],
        "customdata": [f"@{spot.id}" for _, spot in found],
        "hovertext": ["<br>".join(plain(line, 80) for line in spot.lines) for _, spot in found],
        "hoverinfo": "text",
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2, "color": colour}},
    }
    if mark is Mark.PROMOTED and count <= LABELLED:
        drawn |= {
            "mode": "markers+text",
            "text": [plain(spot.label, 34) for _, spot in found],
            "textposition": "bottom right",
            "textfont": {"size": 11, "color": "var:soft"},
            "cliponaxis": False,
        }
    return drawn


def _end(steps: Sequence[Step], count: int) -> list[dict[str, Any]]:
    """Name the line at its end."""
    if not steps:
        return []
    last = steps[-1]
    said = f"baseline {last.value:,.6g}" + (f"/{last.of}" if last.of else "")
    place = {"x": count - 0.4, "y": last.value, "xanchor": "right", "yanchor": "bottom", "showarrow": False}
    return [{"text": said, **place, "yshift": 6, "font": {"color": "var:accent", "size": 12}}]
