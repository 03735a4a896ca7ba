"""Figures as plotly itself reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

CSS = Path(__file__).parents[2] / "static" / "css"
TOKENS = set(re.findall(r"--([\w-]+):", (CSS / "base.css").read_text() + (CSS / "figure.css").read_text()))


def drawn(figure: dict[str, Any]) -> go.Figure:
    """Return a figure that plotly has validated, after its tokens were looked up in the style sheets."""
    return go.Figure(coloured(figure))


def coloured(value: Any) -> Any:
    """Put a colour where the page's script puts a token's."""
    if isinstance(value, str) and value.startswith("var:"):
        assert value[4:] in TOKENS, value
        return "#123456"
    if isinstance(value, list):
        return [coloured(item) for item in value]
    if isinstance(value, dict):
        return {name: coloured(item) for name, item in value.items()}
    return value
