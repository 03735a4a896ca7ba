"""What the forms of experiments and trainings offer, and begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnesslab.queries.engines import engines
from harnesslab.queries.panels import PanelRow

DEFAULTS = {"trials": "1", "seed": "12345", "temperature": "0", "engine": ""}
CASE = "case"


def measuring_choices(panels: Sequence[PanelRow]) -> dict[str, Any]:
    """Return the panels of a project and the engines, as templates choose from them."""
    return {
        "panels": [(row.argument, _panel_words(row)) for row in panels],
        "engines": [
            (row.name, f"{row.name} · {row.ceiling} at a time{' (away)' if row.up is False else ''}")
            for row in engines()
        ],
    }


def _panel_words(row: PanelRow) -> str:
    cases = f"{row.cases} case{'' if row.cases == 1 else 's'}"
    return f"{row.name} · {cases} · {row.digest[:8]}{'' if row.newest else ' (older)'}"
