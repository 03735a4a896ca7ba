"""Small pictures made of their bytes, and the ways in which dialects write them."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any


def png(width: int = 3, height: int = 2, grey: int = 0) -> bytes:
    """Return a whole grey PNG."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\x00" + bytes([grey]) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def written(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def address(data: bytes, media: str = "image/png") -> str:
    """Return bytes as a data address."""
    return f"data:{media};base64,{written(data)}"


def dialects(data: bytes) -> dict[str, Any]:
    """Return one PNG as each dialect writes it in a message's content."""
    return {
        "chat": {"type": "image_url", "image_url": {"url": address(data)}},
        "chat, as text": {"type": "image_url", "image_url": address(data)},
        "responses": {"type": "input_image", "image_url": address(data)},
        "screenshot": {"type": "computer_screenshot", "image_url": address(data)},
        "anthropic": {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": written(data)},
        },
        "protocol": {"type": "image", "data": written(data), "mimeType": "image/png"},
        "inspect": {"type": "image", "image": address(data)},
        "gemini": {"inlineData": {"mimeType": "image/png", "data": written(data)}},
        "telemetry": {"type": "blob", "mime_type": "image/png", "content": written(data)},
    }
