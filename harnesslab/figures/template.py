"""What every figure shares: axes, type, colours as tokens of the page, and text that is only text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

SERIES = tuple(f"var:s{number}" for number in range(1, 9))
"""Colours that colour-blind readers can tell apart, for up to eight series; see `static/css/figure.css`."""
GOOD, BAD, NONE = "var:s1", "var:s2", "var:s7"
LONGEST = 28
ROW = 26
"""Pixels of a horizontal bar with its gap."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_AXIS: dict[str, Any] = {
    "automargin": True,
    "gridcolor": "var:line",
    "zerolinecolor": "var:strong-line",
    "linecolor": "var:strong-line",
    "tickcolor": "var:strong-line",
    "fixedrange": True,
}


def figure(
    data: list[dict[str, Any]], *, height: int, x: dict[str, Any], y: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Return a Plotly figure; `x` and `y` add to the axes, `more` to the layout."""
    layout = {
        "height": height,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "xaxis": axis(x),
        "yaxis": axis(y),
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "hovermode": "closest",
        "bargap": 0.25,
        **more,
    }
    return {"data": data, "layout": layout}


def axis(changes: dict[str, Any]) -> dict[str, Any]:
    """Return an axis; a title is given as text."""
    made = {**_AXIS, **changes}
    if isinstance(made.get("title"), str):
        made["title"] = {"text": made["title"], "standoff": 8, "font": {"size": 12}}
    return made


def plain(text: str, longest: int = LONGEST) -> str:
    """Return text as Plotly shows it letter by letter: no markup, no control characters, cut where it is long."""
    shown = _CONTROL.sub(" ", text)
    shown = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def distinct(labels: Sequence[str]) -> list[str]:
    """Keep labels apart that were cut to the same text: Plotly would draw them as one."""
    seen: dict[str, int] = {}
    made = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        made.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return made
