"""The sentence of a comparison with its telling words marked."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from harnesslab.queries.comparisons.result import ComparisonResult

register = template.Library()

_ASIDE = re.compile(
    r" (?=That is at the level |The first raw difference |\d+ scrub rules? removed |Apart from that they differ "
    r"|Token ids differ under |The outcomes differ; )"
)
_TELLING = re.compile(
    r"(?<=at the boundary )\S+?(?=[,:] )|(?<=At step )\d+(?=,? )|(?<= the )model(?= parts them)"
    r"|^Identical in (?:all \d+ steps|the one step)|^The tool calls are identical"
    r"|(?<=declare a difference: )[^.;]+"
)


@register.filter
def telling(result: ComparisonResult) -> SafeString:
    """Write the sentence: its telling words bold, what each side said underlined, what is beside the point apart."""
    main, *aside = _ASIDE.split(result.sentence, maxsplit=1)
    told = format_html_join("", "{}", ((piece,) for piece in _pieces(main, result)))
    return format_html('{} <span class="aside">{}</span>', told, aside[0]) if aside else told


def _pieces(text: str, result: ComparisonResult) -> list[str | SafeString]:
    """Cut a text at its telling words; the words that the sides said are not searched for any."""
    found = result.first_divergence
    quotes = [f'"{said}"' for said in found.excerpt] if found is not None and found.excerpt is not None else []
    if not quotes or f"{quotes[0]} against {quotes[1]}" not in text:
        return _bold(text)
    before, after = text.split(f"{quotes[0]} against {quotes[1]}", 1)
    sides = [format_html('<span class="said">{}</span>', quote) for quote in quotes]
    return [*_bold(before), sides[0], " against ", sides[1], *_bold(after)]


def _bold(text: str) -> list[str | SafeString]:
    pieces: list[str | SafeString] = []
    end = 0
    for match in _TELLING.finditer(text):
        pieces += [text[end : match.start()], format_html("<b>{}</b>", match.group())]
        end = match.end()
    return [*pieces, text[end:]]
