"""Tables of numbers on pages."""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harnesslab.figures.sheets import Column, Entry, Sheet

register = template.Library()


@register.filter
def written(sheet: Sheet) -> list[list[tuple[bool, SafeString]]]:
    """Write the rows that a page shows: (numeric, cell) each."""
    return [
        [(column.numeric, cell(entry, column)) for entry, column in zip(row, sheet.columns, strict=True)]
        for row in sheet.rows[: sheet.rows_on_page]
    ]


def cell(entry: Entry, column: Column) -> SafeString:
    """Write one cell: its number in its unit with its denominator, why it is undefined, and the rollouts behind it."""
    if entry.value is None:
        word = "undefined" if column.unit in ("x", "%", "±", "±%") else "–"
        return format_html('<span class="gap" title="{}">{}</span>', entry.why, word) if entry.why else SafeString("–")
    text = entry.value if isinstance(entry.value, str) else number(entry.value, column.unit)
    shown = format_html("{}", text)
    if entry.query:
        shown = format_html('<a href="{}">{}</a>', address(entry.query), shown)
    return shown if entry.of is None else format_html('{} <span class="quiet">of {}</span>', shown, f"{entry.of:,}")


def address(query: str) -> str:
    """Return the page of the rollouts that a query names, or of the experiment."""
    if query.startswith("@"):
        return reverse("experiment", args=[int(query[1:])])
    if query.startswith("#"):
        return reverse("rollout", args=[int(query[1:])])
    return f"{reverse('rollouts')}?{query}"


def number(value: float, unit: str) -> str:
    """Write a number in its unit."""
    match unit:
        case "%":
            return f"{100 * value:.1f} %"
        case "±%":
            return f"{100 * value:+.1f} %".replace("-", "−")
        case "±":
            return f"{value:+.4f}".replace("-", "−")
        case "s":
            return f"{value:,.1f} s" if value >= 1 or not value else f"{value:,.3f} s"
        case "price":
            return f"{value:,.4f}"
        case "x":
            return f"{value:,.0f}" if value >= 1000 else f"{value:,.4g}"
    return f"{value:,}"
