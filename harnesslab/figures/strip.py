"""The strip of a comparison: both runs step by step, coloured by how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

BARS = 400
"""More cells than this are drawn as an image, without patterns."""
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


class Cell(Protocol):
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


def strip_figure(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return a Plotly figure; colours are the page's tokens, which the page's script puts in."""
    if len(cells) > BARS:
        return {"data": [_heatmap(cells)], "layout": _layout(len(cells))}
    sides = [("B", "only-a", [cell.step_b for cell in cells]), ("A", "only-b", [cell.step_a for cell in cells])]
    return {"data": [_bars(name, gone, steps, cells) for name, gone, steps in sides], "layout": _layout(len(cells))}


def _bars(name: str, gone: str, steps: Sequence[int | None], cells: Sequence[Cell]) -> dict[str, Any]:
    shown = [cell.relation != gone for cell in cells]
    base = 0 if name == "B" else 1.15
    return {
        "type": "bar",
        "name": name,
        "x": list(range(len(cells))),
        "y": [1 if visible else 0 for visible in shown],
        "base": base,
        "marker": {
            "color": [f"var:{_COLOUR[cell.relation]}" for cell in cells],
            "pattern": {"shape": [_PATTERN.get(cell.relation, "") for cell in cells], "size": 5, "solidity": 0.35},
        },
        "customdata": [cell.row for cell in cells],
        "text": [
            f"{name} step {step + 1}: {_WORD[cell.relation]}" if step is not None else ""
            for step, cell in zip(steps, cells, strict=True)
        ],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }


def _heatmap(cells: Sequence[Cell]) -> dict[str, Any]:
    order = list(_COLOUR)
    values = [order.index(cell.relation) for cell in cells]
    scale = [[index / (len(order) - 1), f"var:{_COLOUR[name]}"] for index, name in enumerate(order)]
    return {
        "type": "heatmap",
        "z": [
            [None if cell.relation == "only-a" else value for cell, value in zip(cells, values, strict=True)],
            [None if cell.relation == "only-b" else value for cell, value in zip(cells, values, strict=True)],
        ],
        "y": ["B", "A"],
        "zmin": 0,
        "zmax": len(order) - 1,
        "colorscale": scale,
        "showscale": False,
        "customdata": [[cell.row for cell in cells]] * 2,
        "text": [[f"step {_step(cell)}: {_WORD[cell.relation]}" for cell in cells]] * 2,
        "hovertemplate": "%{y} %{text}<extra></extra>",
    }


def _step(cell: Cell) -> int:
    step = cell.step_a if cell.step_a is not None else cell.step_b
    return (step or 0) + 1


def _layout(count: int) -> dict[str, Any]:
    bars = count <= BARS
    return {
        "height": 62,
        "margin": {"l": 22, "r": 0, "t": 2, "b": 2},
        "barmode": "overlay",
        "bargap": 0.12 if count <= 120 else 0,
        "showlegend": False,
        "xaxis": {"visible": False, "range": [-0.5, count - 0.5], "fixedrange": False},
        "yaxis": {
            "range": [0, 2.15] if bars else None,
            "tickvals": [0.5, 1.65] if bars else None,
            "ticktext": ["B", "A"] if bars else None,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        "dragmode": "zoom",
        "hovermode": "closest",
    }
