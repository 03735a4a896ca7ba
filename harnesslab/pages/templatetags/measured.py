"""How experiments are written: what they are in a story, outcomes as signs, shares and conditions."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.pages.templatetags.lab import GLYPHS

register = template.Library()

MARKS: dict[str, tuple[str, str]] = {
    "promoted": ("▲", "good"),
    "rejected": ("▽", "bad"),
    "invalid": ("◈", "doubt"),
    "running": ("…", "doubt"),
}


@register.filter
def mark(value: str, word: str) -> SafeString:
    """Write what an experiment is in its project's story as glyph, word and colour."""
    glyph, tone = MARKS.get(value, ("–", "none"))
    return format_html('<span class="outcome {}"><i aria-hidden="true">{}</i> {}</span>', tone, glyph, word)


@register.filter
def glyph(value: str) -> SafeString:
    """Write an outcome as its glyph, the word for screen readers and on hover."""
    sign, tone = GLYPHS.get(value, ("–", "none"))
    word = "no verdict" if value == "unknown" else value.replace("_", " ")
    shown = '<span class="outcome {}" title="{}"><i aria-hidden="true">{}</i><span class="sr">{}</span></span>'
    return format_html(shown, tone, word, sign, word)


@register.filter
def percent(value: float | None) -> str:
    """Write a share; an undefined one is no number."""
    return "–" if value is None else f"{100 * value:.1f} %"


@register.filter
def letter(place: int) -> str:
    """Name the side at a zero-based place."""
    return "ABCDEFGH"[place]


@register.filter
def condition(value: JSON) -> SafeString:
    """Write a condition's value as it is compared; an unknown one looks like a gap."""
    if isinstance(value, Mapping) and set(value) == {"unknown"}:
        return format_html('<span class="gap" title="{}">unknown</span>', str(value["unknown"]))
    text = value if isinstance(value, str) else canonical_bytes(value).decode()
    return format_html("{}", text if len(text) <= 200 else text[:200] + "…")
