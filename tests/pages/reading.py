"""What a page says, without its markup."""

from __future__ import annotations

import html
import re

from django.test import Client


def text(client: Client, address: str, **headers: str) -> str:
    """Return the words of a page, a blank where an element was."""
    page = client.get(address, headers=headers).content.decode()
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))
