"""Kinds of text that are no trace, told by their lines, so that a refusal says truly what a file is."""

from __future__ import annotations

import re
from collections.abc import Callable

from harnesslab.formats.reading.sniff import Shape

_LOOKED_AT = 20_000
"""Characters of a text that are looked at."""
_KEY = re.compile(r"\s*(?:- |-$|[\w.\"'/-]+:(?:\s|$)|---|\.\.\.$|#)")
"""A line of YAML: an entry, a key with its colon, a document's mark or a comment; a time such as 12:00:01 is none."""
_COMMANDS = re.compile(r"""\[\s*(?:"[^"\n]*"|'[^'\n]*')(?:\s*,\s*(?:"[^"\n]*"|'[^'\n]*'))*\s*,?\s*\]""")
"""A command as the list of its words or keys, as JSON or Python writes it."""


def _lines(shape: Shape) -> list[str]:
    """Return the lines that say something, of a text or of JSON lines."""
    if shape.kind not in ("text", "lines"):
        return []
    start = shape.unit.only.read()[:_LOOKED_AT].decode("utf-8", "replace").removeprefix("\ufeff")
    return [line.rstrip() for line in start.split("\n") if line.strip()]


def _text(shape: Shape) -> list[str]:
    return _lines(shape) if shape.kind == "text" else []


def _commands(shape: Shape) -> bool:
    lines = _lines(shape)[:20]
    return bool(lines) and all(_COMMANDS.fullmatch(line.strip()) for line in lines)


def _script(shape: Shape) -> bool:
    lines = _text(shape)
    return bool(lines) and (lines[0].startswith("#!") or lines[0].lstrip().startswith(("[ ", "[[ ", "{ ")))


def _capture(shape: Shape) -> bool:
    """Match server-sent events with something else around them, such as the answer's headers."""
    return sum(line.startswith(("data: {", 'data:{"')) for line in _text(shape)) > 1


def _toml(shape: Shape) -> bool:
    """Match lines of `key = value`, or a table's heading, which JSON that starts with a bracket is not."""
    told = [line.strip() for line in _text(shape) if not line.lstrip().startswith("#")]
    return bool(told) and (" = " in told[0] or bool(re.fullmatch(r"\[{1,2}[\w.\"'-]+\]{1,2}", told[0])))


def _markdown(shape: Shape) -> bool:
    lines = _text(shape)
    if any(line.startswith(("## ", "|--", "| --", "|:-", "```")) for line in lines):
        return True
    return any(line.startswith("# ") for line in lines) and not _keyed([line for line in lines if line[:1] != "#"])


def _yaml(shape: Shape) -> bool:
    lines = _text(shape)
    return len(lines) > 1 and _keyed(lines)


def _keyed(lines: list[str]) -> bool:
    """Say whether lines begin with a key or entry, and most of them do; text over several lines may stand between."""
    looked = lines[:40]
    fitting = [bool(_KEY.match(line)) for line in looked]
    return bool(looked) and fitting[0] and sum(fitting) >= 0.7 * len(looked)


TEXTS: tuple[tuple[Callable[[Shape], bool], str, str], ...] = (
    (_commands, "a list of commands, not a trace", "import the folder it belongs to"),
    (_script, "a script, not a trace", "import the folder it belongs to"),
    (
        _capture,
        "server-sent events with other text around them",
        "keep the events alone, or log each request with its response as JSON lines",
    ),
    (_toml, "a TOML file, not a trace", "import the folder it belongs to"),
    (_markdown, "a Markdown text, not a trace", "import the data that it describes"),
    (_yaml, "a YAML file, not a trace", "import the folder it belongs to"),
)
"""In order of asking: (what matches, what it is, what would help)."""
