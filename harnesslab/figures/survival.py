"""Figures over steps and time: how long rollouts lasted, when solves came, and model time against its budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnesslab.core.efficiency.faults import Timed
from harnesslab.core.efficiency.survival import Bucket, Survival
from harnesslab.figures.template import NONE, ROW, SERIES, figure, plain

MOST_CASES = 20
WHOLE = 12
"""Up to so many steps each has a tick of its own, so that none falls between two steps."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")


def survival_figure(lasted: Sequence[tuple[str, Survival]]) -> dict[str, Any]:
    """Draw the share of rollouts still running after each step, with n and how many a cap cut off."""
    data = []
    for number, (name, found) in enumerate(lasted):
        n = found.rollouts
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"{plain(name)} (n = {n:,}, {found.cut:,} cut off)",
                "x": [at.steps for at in found.after],
                "y": [at.running / n for at in found.after],
                "line": {"shape": "hv", "color": SERIES[number % len(SERIES)], "dash": _DASHES[number % len(_DASHES)]},
                "hovertext": [
                    f"{plain(name)}<br>after {at.steps:,} steps: {at.running:,} of {n:,} running, "
                    f"{at.solved:,} solved, {at.cut:,} cut off"
                    for at in found.after
                ],
                "hoverinfo": "text",
            }
        )
    y = {"title": "still running", "range": [0, 1.03], "tickformat": ".0%"}
    longest = max((at.steps for _, found in lasted for at in found.after), default=0)
    x = {"title": "steps", "rangemode": "tozero", "tickformat": ",d", **({"dtick": 1} if longest <= WHOLE else {})}
    return figure(data, height=260, x=x, y=y, showlegend=True)


def solves_figure(solved: Sequence[tuple[str, Sequence[Bucket]]]) -> dict[str, Any]:
    """Draw new solves by step bucket."""
    data = []
    for number, (name, found) in enumerate(solved):
        data.append(
            {
                "type": "bar",
                "name": plain(name),
                "x": [label(item) for item in found],
                "y": [item.solved for item in found],
                "text": [f"{item.solved:,}" if item.solved else "" for item in found],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertext": [
                    f"{plain(name)}<br>steps {label(item)}: {item.solved:,} solved of {item.ended:,} that ended"
                    for item in found
                ],
                "hoverinfo": "text",
                "marker": {"color": SERIES[number % len(SERIES)]},
            }
        )
    order = [label(item) for item in max((found for _, found in solved), key=len, default=())]
    x = {"title": "steps that the solve took", "type": "category", "categoryorder": "array", "categoryarray": order}
    return figure(data, height=260, x=x, y={"title": "solves", "rangemode": "tozero"}, showlegend=True)


def label(bucket: Bucket) -> str:
    """Name a bucket by its steps."""
    return f"{bucket.first}–{bucket.last}" if bucket.last > bucket.first else str(bucket.first)


def times_figure(times: Sequence[tuple[str, Timed]]) -> dict[str, Any]:
    """Draw where the time of the rollouts with the most model time went, with their budgets as marks."""
    shown = sorted((item for item in times if item[1].model), key=lambda item: -(item[1].model or 0))[:MOST_CASES]
    if not shown:
        return figure([], height=0, x={}, y={})
    names = [f"{letter} {plain(item.case, 20)} #{item.trial + 1}" for letter, item in shown]
    places = list(range(len(shown)))
    parts = (("model", SERIES[0]), ("waited", NONE), ("tool", SERIES[1]), ("verify", SERIES[2]))
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": {"waited": "waiting", "tool": "tools"}.get(part, part),
            "y": places,
            "x": [getattr(item, part) for _, item in shown],
            "customdata": [f"#{item.rollout}" for _, item in shown],
            "hovertext": [
                f"{name}<br>{part}: {_seconds(getattr(item, part))}"
                for name, (_, item) in zip(names, shown, strict=True)
            ],
            "hoverinfo": "text",
            "marker": {"color": colour},
        }
        for part, colour in parts
        if part == "model" or any(getattr(item, part) for _, item in shown)
    ]
    if any(item.wall for _, item in shown):
        data.append(_budgets(shown))
    y = {"autorange": "reversed", "tickmode": "array", "tickvals": places, "ticktext": names}
    height = 90 + ROW * max(1, len(shown))
    return figure(
        data, height=height, x={"title": "seconds", "rangemode": "tozero"}, y=y, barmode="stack", showlegend=True
    )


def _seconds(value: float | None) -> str:
    return "not stated" if value is None else f"{value:,.1f} s"


def _budgets(shown: Sequence[tuple[str, Timed]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "time budget",
        "x": [item.wall for _, item in shown],
        "y": list(range(len(shown))),
        "marker": {"symbol": "line-ns-open", "size": 16, "color": "var:ink", "line": {"width": 2, "color": "var:ink"}},
        "hovertext": [f"budget {item.wall:,.0f} s" if item.wall else "" for _, item in shown],
        "hoverinfo": "text",
    }
