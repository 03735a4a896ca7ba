"""Pictures, audio and files inside messages and tool results, as every dialect writes them.

A part is known by its type, size, dimensions and digest; its bytes stay where they were recorded. One that is only
linked has no digest, since nobody knows what is there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from harnesslab.core.canonical import JSON, Digest, bytes_digest
from harnesslab.core.trace.picture_size import picture_size

SHORT = 16
"""Digits of a digest that people are shown."""
_LONGEST_LINK = 80
_KINDS = {
    "image_url": "image", "input_image": "image", "image": "image", "computer_screenshot": "image",
    "output_image": "image", "input_audio": "audio", "audio": "audio", "output_audio": "audio", "audio_url": "audio",
    "video": "video", "input_video": "video", "video_url": "video", "document": "file", "file": "file",
    "input_file": "file", "resource": "file", "blob": "file", "uri": "file", "media": "file",
}  # fmt: skip
_BYTES = ("data", "file_data", "blob", "image", "audio", "video", "document", "image_url", "content", "b64_json")
_LINKS = ("url", "file_url", "uri", "fileUri", "path", "file_id", "id")
_TYPES = ("media_type", "mime_type", "mimeType", "mediaType")
_INNER = ("image_url", "input_audio", "audio_url", "video_url", "file", "source", "resource", "inlineData", "fileData")
_WORDS = {"image": "picture", "audio": "audio", "video": "video", "file": "file"}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message that is no text."""

    kind: str
    """`image`, `audio`, `video` or `file`."""
    media: str = ""
    """Its media type, such as `image/png`, as far as the source or the bytes say it."""
    size: int | None = None
    """Bytes; None where they are not in the record."""
    width: int | None = None
    height: int | None = None
    digest: Digest | None = None
    """SHA-256 of the bytes."""
    name: str = ""
    link: str = ""
    """Where the bytes are, if they are not in the record."""

    @property
    def word(self) -> str:
        """What people call it."""
        return _WORDS[self.kind]

    def __str__(self) -> str:
        known = [self.media or self.kind]
        if self.width is not None and self.height is not None:
            known[0] += f" {self.width}×{self.height}"
        if self.name:
            known.append(self.name)
        if self.size is not None:
            known.append(f"{self.size:,} bytes")
        if self.digest is not None:
            known.append(f"sha256 {self.digest[:SHORT]}")
        elif self.link:
            known.append(f"at {self.link[:_LONGEST_LINK]}, not in the record")
        return f"[{', '.join(known)}]"

    def to_json(self) -> dict[str, JSON]:
        """Return what is known of it."""
        known: dict[str, JSON] = {
            "kind": self.kind, "media": self.media, "size": self.size, "width": self.width, "height": self.height,
            "sha256": self.digest, "name": self.name, "link": self.link,
        }  # fmt: skip
        return {name: value for name, value in known.items() if value not in (None, "")}


def parts_of(content: JSON) -> tuple[Part, ...]:
    """Return the parts in a message, a content value or a tool's result, in reading order."""
    return tuple(_walk(content))


def without_parts(content: JSON) -> JSON:
    """Return a value with each of its parts replaced by its kind, so that what is said beside them can be compared."""
    if isinstance(content, Mapping):
        found = part_of(content)
        if found:
            return [part.kind for part in found]
        return {key: without_parts(item) for key, item in content.items()}
    return [without_parts(item) for item in content] if isinstance(content, list) else content


def other_parts(a: JSON, b: JSON) -> str:
    """Name what differs of two values that are equal but for their parts, such as `picture`; empty where more does."""
    one, two = parts_of(a), parts_of(b)
    if not one or one == two or without_parts(a) != without_parts(b):
        return ""
    words = sorted({left.word for left, right in zip(one, two, strict=True) if left != right})
    return " and ".join(words)


def part_of(value: Mapping[str, JSON]) -> tuple[Part, ...]:
    """Return the parts that one content item is; empty for text, a call, or a kind that is not known."""
    kind = _kind(value)
    if not kind:
        return ()
    links = value.get("image_urls")
    if isinstance(links, list):  # OpenHands: several pictures in one item
        return tuple(_made(kind, {"url": link}) for link in links if isinstance(link, str))
    if isinstance(value.get("text"), str) or isinstance(_inside(value).get("text"), str):
        return ()
    return (_made(kind, value),)


def _walk(content: JSON) -> Iterator[Part]:
    if isinstance(content, list):
        for item in content:
            yield from _walk(item)
    elif isinstance(content, Mapping):
        found = part_of(content)
        yield from found
        if not found:
            for key in ("content", "output", "parts", "functionResponse", "response"):
                if isinstance(content.get(key), list | Mapping):
                    yield from _walk(content[key])


def _kind(value: Mapping[str, JSON]) -> str:
    kind = value.get("type")
    if isinstance(kind, str):
        found = _KINDS.get(kind, "")
        if kind in ("resource", "blob", "uri", "media", "file"):
            return _of_media(_stated(value)) or found
        return found
    if isinstance(value.get("inlineData"), Mapping) or isinstance(value.get("fileData"), Mapping):
        return _of_media(_stated(value)) or "file"
    return ""


def _made(kind: str, value: Mapping[str, JSON]) -> Part:
    """Read one part of an item, whose bytes or address lie in it or one level below."""
    places = (_inside(value), value)
    media = _stated(value)
    name = next((item for place in places for key in ("filename", "name", "title") if (item := _text(place, key))), "")
    written = next((item for place in places for key in _BYTES if (item := _text(place, key))), "")
    link = next((item for place in places for key in _LINKS if (item := _text(place, key))), "")
    if link.startswith("data:"):
        written, link = link, ""
    if written.startswith(("http:", "https:", "file:", "gs:", "s3:", "attachment:")):
        written, link = "", written
    if not written:
        return Part(kind, media, name=name, link=link)
    stated, data = _decoded(written, plain=_text(_inside(value), "type") == "text")
    if data is None:
        return Part(kind, media, name=name, link=link or written)
    size, found = len(data), picture_size(data) if kind == "image" else None
    media = media or stated or (found.media if found else "") or _of_format(kind, places)
    width, height = (found.width, found.height) if found else (None, None)
    return Part(kind, media, size, width, height, bytes_digest(data), name, link)


@lru_cache(maxsize=16)  # a message is read several times in a row; a picture in it is decoded once
def _decoded(written: str, *, plain: bool) -> tuple[str, bytes | None]:
    """Return (media type that a data address states, bytes) of a text; None where it holds no bytes."""
    if plain:
        return "text/plain", written.encode("utf-8", "surrogatepass")
    stated, body = "", written
    if written.startswith("data:"):
        head, _, body = written[5:].partition(",")
        stated = head.split(";", 1)[0]
        if not head.endswith(";base64"):
            return stated, unquote_to_bytes(body)
    try:
        return stated, base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return stated, None


def _inside(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the object in which an item keeps its bytes or address; an address alone stands for one."""
    for key in _INNER:
        item = value.get(key)
        if isinstance(item, Mapping):
            return item
        if isinstance(item, str) and key in ("image_url", "audio_url", "video_url"):
            return {"url": item}
    return {}


def _stated(value: Mapping[str, JSON]) -> str:
    return next((item for place in (_inside(value), value) for key in _TYPES if (item := _text(place, key))), "")


def _of_media(media: str) -> str:
    family = media.split("/", 1)[0]
    return family if family in ("image", "audio", "video") else ""


def _of_format(kind: str, places: tuple[Mapping[str, JSON], ...]) -> str:
    stated = next((item for place in places if (item := _text(place, "format"))), "")
    return f"{kind}/{stated}" if stated and kind in ("audio", "video", "image") else ""


def _text(place: Mapping[str, JSON], key: str) -> str:
    value = place.get(key)
    return value if isinstance(value, str) else ""
