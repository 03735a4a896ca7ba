"""Type and dimensions of a picture, read from its first bytes; no picture is decoded."""

from __future__ import annotations

from dataclasses import dataclass

_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""JPEG markers that open a frame, which states the dimensions."""


@dataclass(frozen=True, slots=True)
class PictureSize:
    """What a picture's head states; dimensions in pixels, None where they lie deeper."""

    media: str
    width: int | None = None
    height: int | None = None


def picture_size(data: bytes) -> PictureSize | None:
    """Read the head of a PNG, GIF, JPEG, WebP or BMP; None for anything else."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return _sized("image/png", data[16:20], data[20:24], "big")
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return _sized("image/gif", data[6:8], data[8:10], "little")
    if data[:2] == b"\xff\xd8":
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    if data[:2] == b"BM" and len(data) >= 26:
        return _sized("image/bmp", data[18:22], data[22:26], "little")
    return None


def _sized(media: str, width: bytes, height: bytes, order: str) -> PictureSize:
    if not width or not height:
        return PictureSize(media)
    if order == "big":
        return PictureSize(media, int.from_bytes(width, "big"), int.from_bytes(height, "big"))
    return PictureSize(media, int.from_bytes(width, "little"), int.from_bytes(height, "little"))


def _jpeg(data: bytes) -> PictureSize:
    """Walk the segments to the frame's; each states its own length, marker excluded."""
    place = 2
    while place + 9 <= len(data):
        if data[place] != 0xFF:
            break
        marker = data[place + 1]
        if marker in _FRAMES:
            return _sized("image/jpeg", data[place + 7 : place + 9], data[place + 5 : place + 7], "big")
        place += 1 if marker == 0xFF else 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return PictureSize("image/jpeg")


def _webp(data: bytes) -> PictureSize:
    """Read one of the three kinds of WebP, which state their dimensions in three ways."""
    kind, media = data[12:16], "image/webp"
    if kind == b"VP8X" and len(data) >= 30:
        return PictureSize(media, int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1)
    if kind == b"VP8 " and len(data) >= 30:
        mask = 0x3FFF
        return PictureSize(
            media, int.from_bytes(data[26:28], "little") & mask, int.from_bytes(data[28:30], "little") & mask
        )
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return PictureSize(media, (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    return PictureSize(media)
