"""What the forms of reruns and regression cases offer."""

from __future__ import annotations

from harnesslab.core.running.recipe import DRAWN, SAME
from harnesslab.core.running.rerun import OnMiss
from harnesslab.pages.reruns.plans import NUMBER
from harnesslab.queries.engines import engines

SEEDS = ((SAME, "same as recorded"), (DRAWN, "drawn for each attempt"), (NUMBER, "this number"))
MISSES = ((OnMiss.STOP, "stop: the miss is the finding"), (OnMiss.LIVE, "go live from there, labelled"))


def engine_choices() -> list[tuple[str, str]]:
    """Return the engines by name, those that are away marked."""
    return [(row.name, f"{row.name}{' (away)' if row.up is False else ''}") for row in engines()]
