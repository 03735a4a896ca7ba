"""The shape of a unit, looked at once and shown to every importer: document, lines, archive, folder or text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON, integer, parse
from harnesslab.core.errors import FormatRefused, LimitExceeded
from harnesslab.formats.reading.inputs import MAX_DOCUMENT, Unit, json_document
from harnesslab.formats.reading.sse import is_stream, stream_data

_BEGINNING = re.compile(rb'[{]\s*(?:$|["}])|\[\s*(?:$|[\]{\["]|-?\d|true|false|null|NaN|-?Infinity)')
"""How JSON begins; a list of shell commands may begin with a bracket too, and is no broken JSON."""
HEAD_LINES = 50
"""How many JSON lines are looked at."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a unit looks like, without knowing any format."""

    unit: Unit
    kind: str
    """`json`, `lines`, `stream` (server-sent events), `zip`, `folder`, `text` or `binary`."""
    document: JSON = None
    """The parsed document of a `json` unit."""
    head: list[JSON] = field(default_factory=list)
    """The first parsed lines of a `lines` unit, or data of a `stream`."""
    names: frozenset[str] = frozenset()
    """Paths in a `folder`."""

    @property
    def object(self) -> Mapping[str, JSON]:
        """The document if it is an object, else an empty one."""
        return self.document if isinstance(self.document, Mapping) else {}

    @property
    def items(self) -> list[JSON]:
        """The document if it is a list, else nothing."""
        return self.document if isinstance(self.document, list) else []

    def first_object(self) -> Mapping[str, JSON]:
        """The first line, or first list item, that is an object; else an empty one."""
        for item in (*self.head, *self.items[:HEAD_LINES]):
            if isinstance(item, Mapping):
                return item
        return {}

    def describe(self) -> str:
        """Say in a few words what is there, for a refusal."""
        match self.kind:
            case "json" if isinstance(self.document, Mapping):
                return f"a JSON object with the keys {_keys(self.document)}"
            case "json" if isinstance(self.document, list):
                first = self.first_object()
                return f"a JSON list of {len(self.document)} items" + (
                    f" with the keys {_keys(first)}" if first else ""
                )
            case "json":
                return "a JSON value that is neither an object nor a list"
            case "lines" if not self.first_object():
                return "JSON lines that are no objects"
            case "lines":
                return f"JSON lines with the keys {_keys(self.first_object())}"
            case "stream":
                return f"server-sent events with the keys {_keys(self.first_object())}"
            case "folder":
                return f"a folder with {', '.join(sorted(self.names)[:4])}"
            case "zip":
                return "a zip archive without the members of a known log"
        return f"{self.kind} data"


def shape_of(unit: Unit) -> Shape:
    """Look at a unit once; raises `FormatRefused` for empty files and broken JSON that isn't JSON lines."""
    if unit.folder:
        return Shape(unit, "folder", names=frozenset(unit.files))
    data = unit.only.read()
    stripped = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not stripped:
        raise FormatRefused("the file is empty", where=unit.name)
    if stripped[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return Shape(unit, "zip")
    if not _BEGINNING.match(stripped):
        return _text_shape(unit, data)
    return _json_shape(unit, data)


def _text_shape(unit: Unit, data: bytes) -> Shape:
    if b"\x00" in data[:4096]:
        return Shape(unit, "binary")
    if data.lstrip()[:6] in (b"data: ", b"event:") or data.lstrip()[:6].startswith((b"data:", b"id:", b": ")):
        text = data.decode("utf-8", "surrogateescape")
        if is_stream(text):
            return Shape(unit, "stream", head=list(stream_data(text)[:HEAD_LINES]))
    return Shape(unit, "text")


def _json_shape(unit: Unit, data: bytes) -> Shape:
    head = _head(data)
    several = sum(isinstance(line, Mapping) for line in head) > 1 or (len(head) > 1 and isinstance(head[0], Mapping))
    if several:
        return Shape(unit, "lines", head=[line for line in head if line is not None])
    if len(head) > 1 and all(isinstance(line, list) for line in head):
        return Shape(unit, "lines", head=head)
    try:
        return Shape(unit, "json", document=json_document(data, unit.name))
    except FormatRefused as refusal:
        if head and head[0] is not None and len(data) > MAX_DOCUMENT:
            return Shape(unit, "lines", head=[head[0]])
        if isinstance(refusal, LimitExceeded):
            raise
        raise _explained(refusal, data) from refusal


def _explained(refusal: FormatRefused, data: bytes) -> FormatRefused:
    """Say of a broken JSON document whether it is cut off, several documents in a row, or wrong at some place."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        _, end = json.JSONDecoder(parse_int=integer).raw_decode(text.lstrip())
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
            return FormatRefused(
                f"not valid JSON: the file ends inside a value ({place})",
                where=refusal.where,
                hint="it looks cut off; copy or export it again",
            )
        return FormatRefused(
            f"not valid JSON: {error.msg} at {place}",
            where=refusal.where,
            hint="correct that place, or export it again",
        )
    except RecursionError:
        return refusal
    if text.lstrip()[end:].lstrip(" \t\r\n,")[:1] in ("{", "["):
        return FormatRefused(
            "several JSON documents one after another, which is neither one document nor JSON lines",
            where=refusal.where,
            hint="split it, or write one document a line",
        )
    return refusal


def _head(data: bytes) -> list[JSON]:
    """Parse the first lines one by one; a line that is no JSON is None."""
    found: list[JSON] = []
    start = 0
    while start < len(data) and len(found) < HEAD_LINES:
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end].removeprefix(b"\xef\xbb\xbf")
        start = end + 1
        if not line.strip():
            continue
        indented = line[:1] in (b" ", b"\t")  # a part of a document over several lines, whatever it reads as
        try:
            found.append(None if indented or len(line) > MAX_DOCUMENT else parse(line))
        except ValueError:
            found.append(None)
    return found


def _keys(value: Mapping[str, JSON]) -> str:
    names = list(value)[:6]
    return ", ".join(names) + (" …" if len(value) > len(names) else "") if names else "none"
