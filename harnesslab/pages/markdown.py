"""Markdown that others wrote, as HTML that can do no harm: no markup of its own, no picture, links only to the web."""

from __future__ import annotations

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

LONGEST = 400_000
"""Characters; a longer text is cut."""


class _Markdown(MarkdownIt):
    """CommonMark and tables, with HTML taken as text."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False})
        self.enable("table").disable("image")

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Let through what leads to the web or into the same text."""
        return url.lower().startswith(("https://", "http://", "mailto:", "#"))


_MARKDOWN = _Markdown()


def rendered(text: str) -> SafeString:
    """Return Markdown as HTML; headings begin at the third level, below those of the page."""
    tokens = _MARKDOWN.parse(text[:LONGEST].replace("\x00", "␀"))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        token.attrs.pop("style", None)  # of table cells; the page's policy forbids inline style
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return SafeString(html)
