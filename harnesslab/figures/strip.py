"""The strip of a comparison: both runs step by step, coloured by how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

WIDEST = 24
"""Shorter comparisons are drawn as if they had so many steps, so that a step is never a slab."""
BARS = 400
"""Longer comparisons are drawn with several steps in a bar, each bar showing the worst of its steps."""
_WORST = ("changed", "only-a", "only-b", "moved", "scrubbed", "equal")
_COLOUR = {
    "equal": "equal",
    "scrubbed": "scrub",
    "changed": "different",
    "moved": "different",
    "only-a": "a",
    "only-b": "b",
}
_PATTERN = {"scrubbed": ".", "moved": "/", "only-a": "\\", "only-b": "/"}
_WORD = {
    "equal": "equal",
    "scrubbed": "equal after scrub",
    "changed": "different",
    "moved": "moved",
    "only-a": "only in A",
    "only-b": "only in B",
}


class StripStep(Protocol):
    """What the strip needs of an aligned step."""

    @property
    def relation(self) -> str:
        """How its sides compare."""

    @property
    def step_a(self) -> int | None:
        """Step of A."""

    @property
    def step_b(self) -> int | None:
        """Step of B."""

    @property
    def row(self) -> int:
        """Row to select."""

    @property
    def start(self) -> int:
        """Its first row."""


def strip_figure(cells: Sequence[StripStep]) -> dict[str, Any]:
    """Return a Plotly figure; colours are the page's tokens, which the page's script puts in."""
    size = -(-len(cells) // BARS) or 1
    bins = [cells[start : start + size] for start in range(0, len(cells), size)]
    data = [_bars("B", "only-a", bins), _bars("A", "only-b", bins)]
    starts = [cells[0].start for cells in bins]
    return {"data": data, "layout": {**_layout(len(bins)), "meta": {"starts": starts}}}


def _bars(name: str, gone: str, bins: Sequence[Sequence[StripStep]]) -> dict[str, Any]:
    worst = [min((cell.relation for cell in cells), key=_WORST.index) for cells in bins]
    shown = [any(cell.relation != gone for cell in cells) for cells in bins]
    return {
        "type": "bar",
        "name": name,
        "x": list(range(len(bins))),
        "y": [1 if visible else 0 for visible in shown],
        "base": 0 if name == "B" else 1.15,
        "marker": {
            "color": [f"var:{_COLOUR[relation]}" for relation in worst],
            "pattern": {"shape": [_PATTERN.get(relation, "") for relation in worst], "size": 5, "solidity": 0.35},
        },
        "customdata": [
            next(cell.row for cell in cells if cell.relation == relation)
            for cells, relation in zip(bins, worst, strict=True)
        ],
        "text": [_text(name, cells, relation) for cells, relation in zip(bins, worst, strict=True)],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }


def _text(name: str, cells: Sequence[StripStep], relation: str) -> str:
    steps = [step for cell in cells if (step := cell.step_a if name == "A" else cell.step_b) is not None]
    if not steps:
        return ""
    where = f"step {steps[0] + 1}" if steps[0] == steps[-1] else f"steps {steps[0] + 1}–{steps[-1] + 1}"
    return f"{name} {where}: {_WORD[relation]}"


def _layout(count: int) -> dict[str, Any]:
    return {
        "height": 50,
        "margin": {"l": 22, "r": 1, "t": 1, "b": 1},
        "barmode": "overlay",
        "bargap": 0.06 if count <= 120 else 0,
        "showlegend": False,
        "xaxis": {"visible": False, "range": [-0.5, max(count, WIDEST) - 0.5], "fixedrange": False},
        "yaxis": {
            "range": [-0.1, 2.25],
            "tickvals": [0.5, 1.65],
            "ticktext": ["B", "A"],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        "dragmode": "zoom",
        "hovermode": "closest",
    }
