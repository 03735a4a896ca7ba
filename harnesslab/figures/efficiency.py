"""Figures of token efficiency: levers, where tokens went, and what tools take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.core.efficiency.factors import Lever, Levers, Ratio
from harnesslab.core.efficiency.spending import Score, Spending, Split
from harnesslab.core.trace.tool_uses import ToolUse
from harnesslab.figures.template import BAD, GOOD, NONE, ROW, SERIES, distinct, figure, plain

MOST_TOOLS = 12
NOTHING = 0.0005
"""Smaller changes are written as none."""
MANIFOLD = 10
"""A change from here on is written as a factor."""
_SPENT = {Score.SOLVED: (GOOD, ""), Score.FAILED: (BAD, ""), Score.UNSCORED: (NONE, "/")}


def levers_figure(moved: Sequence[tuple[str, Levers]]) -> dict[str, Any]:
    """Draw the log-ratio of each factor against A; `moved` names each experiment after the first."""
    data = []
    for number, (name, found) in enumerate(moved):
        bars = (*found.factors, found.total)
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": f"{plain(name)} against A",
                "y": [bar.name for bar in bars],
                "x": [bar.log for bar in bars],
                "text": [_change(bar) for bar in bars],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertext": [f"{plain(name)}<br>{bar.name}: {_text(bar.a)} → {_text(bar.b)}" for bar in bars],
                "hoverinfo": "text",
                "marker": {"color": SERIES[(number + 1) % len(SERIES)]},
            }
        )
    rows = 4 * max(1, len(moved))
    reach = max((abs(bar.log or 0) for _, found in moved for bar in (*found.factors, found.total)), default=0) or 1
    x = {
        "title": "ln(here ÷ A): left is fewer",
        "zeroline": True,
        "range": [-1.9 * reach, 1.9 * reach],
    }
    return figure(data, height=110 + ROW * rows, x=x, y={"autorange": "reversed"}, showlegend=True)


def _change(bar: Lever) -> str:
    if bar.change is None:
        return "undefined"
    if abs(bar.change) < NOTHING:
        return "±0 %"
    if bar.change >= MANIFOLD - 1:
        return f"×{bar.change + 1:,.0f}"
    return f"{'−' if bar.change < 0 else '+'}{abs(bar.change):.1%}".replace("%", " %")


def _text(ratio: Ratio) -> str:
    return f"{ratio.value:,.4g}" if ratio.value is not None else "undefined"


def spend_figure(spent: Sequence[tuple[str, Spending]], unit: str) -> dict[str, Any]:
    """Draw tokens of solved, failed and unscored rollouts, stacked, with each one's share in its bar."""
    data = []
    for group, (colour, pattern) in _SPENT.items():
        totals = [sum(part.tokens for part in found.groups.values()) for _, found in spent]
        parts = [found.groups[group] for _, found in spent]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": group.value,
                "y": [plain(name) for name, _ in spent],
                "x": [part.tokens for part in parts],
                "text": [_share(part.tokens, total) for part, total in zip(parts, totals, strict=True)],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "insidetextfont": {"color": "var:bg"},
                "hovertext": [
                    f"{plain(name)}<br>{group.value}: {part.tokens:,} of {total:,} {unit}, {part.rollouts:,} rollouts"
                    for (name, _), part, total in zip(spent, parts, totals, strict=True)
                ],
                "hoverinfo": "text",
                "marker": {"color": colour, "pattern": {"shape": pattern}},
            }
        )
    height = 90 + 40 * max(1, len(spent))
    return figure(data, height=height, x={"title": unit}, y={"autorange": "reversed"}, barmode="stack")


def split_figure(splits: Sequence[tuple[str, Split]]) -> dict[str, Any]:
    """Draw the billed tokens of each kind, stacked; what no rollout states has no bar."""
    parts = {
        "input, uncached": [found.uncached for _, found in splits],
        "input, cached": [found.cached for _, found in splits],
        "output": [None if found.output is None else found.output - (found.reasoning or 0) for _, found in splits],
        "reasoning": [found.reasoning for _, found in splits],
    }
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": kind,
            "y": [plain(name) for name, _ in splits],
            "x": values,
            "hovertext": [
                f"{plain(name)}<br>{kind}: {value or 0:,} tokens in {found.calls:,} calls"
                for (name, found), value in zip(splits, values, strict=True)
            ],
            "hoverinfo": "text",
            "marker": {"color": colour},
        }
        for (kind, values), colour in zip(parts.items(), SERIES, strict=False)
        if any(values)
    ]
    height = 90 + 40 * max(1, len(splits))
    return figure(data, height=height, x={"title": "tokens"}, y={"autorange": "reversed"}, barmode="stack")


def _share(part: int, total: int) -> str:
    return f"{part / total:.0%}".replace("%", " %") if total and part / total >= 0.05 else ""


def tools_figure(used: Sequence[tuple[str, Mapping[str, ToolUse]]], *, seconds: bool) -> dict[str, Any]:
    """Draw output tokens, or seconds, per call of the most used tools; n stands in each hover."""
    calls: dict[str, int] = {}
    for _, tools in used:
        for tool, use in tools.items():
            calls[tool] = calls.get(tool, 0) + (use.timed if seconds else use.asked)
    shown = [tool for tool in sorted(calls, key=lambda name: (-calls[name], name)) if calls[tool]][:MOST_TOOLS]
    labels = distinct([plain(tool, 22) for tool in shown])
    data = []
    for number, (name, tools) in enumerate(used):
        per = [_per_call(tools.get(tool, ToolUse()), seconds=seconds) for tool in shown]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": plain(name),
                "y": labels,
                "x": [value for value, _ in per],
                "text": ["" if value is None else f"{value:,.3g}" for value, _ in per],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertext": [
                    f"{plain(name)}<br>{label}: n = {n:,} calls" for label, (_, n) in zip(labels, per, strict=True)
                ],
                "hoverinfo": "text",
                "marker": {"color": SERIES[number % len(SERIES)]},
            }
        )
    height = 90 + (ROW - 4) * max(1, len(shown)) * max(1, len(used))
    title = "seconds per call" if seconds else "output tokens per call"
    return figure(data, height=height, x={"title": title}, y={"autorange": "reversed"})


def _per_call(use: ToolUse, *, seconds: bool) -> tuple[float | None, int]:
    total, n = (use.seconds, use.timed) if seconds else (float(use.output_tokens), use.asked)
    return (total / n if n else None), n
