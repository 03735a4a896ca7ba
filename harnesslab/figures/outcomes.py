"""Figures of outcomes: how they moved from a baseline to a candidate, and case × experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnesslab.core.measuring.transitions import ABSENT, Transition
from harnesslab.figures.template import distinct, figure, plain

_LABELLED = 60
"""Up to so many rows have their names beside them."""
THIN = 0.2
"""A gap that is hardly seen; without any, Plotly sets an inline style, which the pages' policy forbids."""
_WRITTEN = 1200
"""Cells up to which each bears a glyph; more would be unreadable."""
_KINDS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("○", "var:cell-failed", frozenset({"failed_verification", "step_cap", "timeout", "no_valid_action", "refused"})),
    ("✕", "var:cell-crash", frozenset({"crash"})),
    ("◐", "var:cell-doubt", frozenset({"verify_timeout", "interrupted", "infra_error", "running"})),
    ("–", "var:cell-none", frozenset({"not_run", "unknown", ABSENT})),
    ("●", "var:cell-solved", frozenset({"solved"})),
)
"""By glyph and colour; what is one kind looks alike, its own word is in the hover."""


def transitions_figure(transitions: Sequence[Transition]) -> dict[str, Any]:
    """Draw outcomes of the baseline on the left, of the candidate on the right; what kept its outcome is pale."""
    if not transitions:
        return figure([], height=0, x={}, y={})
    left = list(dict.fromkeys(each.before for each in transitions))
    right = list(dict.fromkeys(each.after for each in transitions))
    totals = [sum(len(each.moves) for each in transitions if each.before == name) for name in left]
    totals += [sum(len(each.moves) for each in transitions if each.after == name) for name in right]
    names = [f"{_word(name)} {total}" for name, total in zip((*left, *right), totals, strict=True)]
    flow = {
        "type": "sankey",
        "arrangement": "snap",
        "node": {
            "label": names,
            "color": [_KINDS[_kind(name)][1] for name in (*left, *right)],
            "pad": 22,
            "thickness": 14,
            "line": {"width": 0},
            "hovertemplate": "%{label} of " + str(sum(totals) // 2) + "<extra></extra>",
        },
        "link": {
            "source": [left.index(each.before) for each in transitions],
            "target": [len(left) + right.index(each.after) for each in transitions],
            "value": [len(each.moves) for each in transitions],
            "color": ["var:line" if each.unmoved else "var:cell-moved" for each in transitions],
            "customdata": [_moved(each) for each in transitions],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
    }
    height = 120 + 44 * max(len(left), len(right))
    return figure([flow], height=height, x={}, y={}, margin={"l": 8, "r": 8, "t": 16, "b": 16})


def _moved(each: Transition) -> str:
    cases = [plain(move.case, 40) for move in each.moves[:8]]
    more = f"<br>and {len(each.moves) - 8} more" if len(each.moves) > 8 else ""
    return f"{_word(each.before)} → {_word(each.after)}: {len(each.moves)}<br>{'<br>'.join(cases)}{more}"


def matrix_figure(
    columns: Sequence[str], rows: Sequence[str], outcomes: Sequence[Sequence[tuple[str, int] | None]]
) -> dict[str, Any]:
    """Draw (outcome, rollout) by row and column as a heat map; None is empty. A cell opens its rollout."""
    if not rows or not columns:
        return figure([], height=0, x={}, y={})
    codes = [[None if cell is None else _kind(cell[0]) for cell in row] for row in outcomes]
    words = [["" if cell is None else _word(cell[0]) for cell in row] for row in outcomes]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "x": distinct([plain(name) for name in columns]),
        "y": distinct([plain(case, 40) for case in rows]),
        "z": codes,
        **_colours(),
        "xgap": 1 if len(columns) <= 100 else THIN,
        "ygap": 1 if len(rows) <= 100 else THIN,
        "text": words,
        "hovertemplate": "%{y}<br>%{x}<br>%{text}<extra></extra>",
        "hoverongaps": False,
        "customdata": [[None if cell is None else f"#{cell[1]}" for cell in row] for row in outcomes],
    }
    if len(rows) * len(columns) <= _WRITTEN:
        signs = [["" if code is None else _KINDS[code][0] for code in row] for row in codes]
        heat |= {"text": signs, "hovertext": words, "texttemplate": "%{text}"}
        heat["hovertemplate"] = "%{y}<br>%{x}<br>%{hovertext}<extra></extra>"
    x: dict[str, Any] = {
        "side": "top",
        "type": "category",
        "showgrid": False,
        "tickangle": -60 if len(columns) > 6 else 0,
    }
    y: dict[str, Any] = {"autorange": "reversed", "type": "category", "showgrid": False}
    x["showticklabels"] = len(columns) <= _LABELLED
    y["showticklabels"] = len(rows) <= _LABELLED
    height = 120 + len(rows) * (20 if len(rows) <= _LABELLED else 6)
    return figure([heat], height=height, x=x, y=y)


def _colours() -> dict[str, Any]:
    """Give each kind of outcome a colour of its own, without steps between."""
    top = len(_KINDS)
    edges = [(place + end) / top for place in range(top) for end in (0, 1)]
    colours = [colour for _, colour, _ in _KINDS for _ in (0, 1)]
    scale = [[edge, colour] for edge, colour in zip(edges, colours, strict=True)]
    return {"zmin": -0.5, "zmax": top - 0.5, "colorscale": scale, "showscale": False}


def _kind(outcome: str) -> int:
    return next((place for place, (_, _, names) in enumerate(_KINDS) if outcome in names), 3)


def _word(outcome: str) -> str:
    return {"unknown": "no verdict", ABSENT: "not in its panel"}.get(outcome, outcome.replace("_", " "))
