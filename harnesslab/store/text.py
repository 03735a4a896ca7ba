"""What text columns can hold on every database, and JSON that must come back exactly as it was."""

from __future__ import annotations

from collections.abc import Mapping

from backports import zstd

from harnesslab.core.canonical import JSON, bytes_digest, canonical_bytes, parse

_LEVEL = 6


def storable(text: str, limit: int = 0) -> str:
    """Return text that every database takes: NUL shown as ␀, lone surrogates replaced, cut to `limit` characters.

    Only names and search text pass through here; recorded content is kept as bytes. A cut name ends with the
    beginning of its digest, so that two long names stay apart.
    """
    clean = text.replace("\x00", "␀").encode("utf-8", "replace").decode()
    if not limit or len(clean) <= limit:
        return clean
    return f"{clean[: limit - 10]}…{bytes_digest(clean.encode())[:9]}"


def frozen(value: JSON) -> bytes:
    """Return a JSON value as compressed canonical bytes, so that NUL, NaN and big integers survive."""
    return zstd.compress(canonical_bytes(value), _LEVEL)


def thawed(data: bytes | memoryview) -> JSON:
    """Read what `frozen` wrote; nothing reads as an empty object."""
    return parse(zstd.decompress(bytes(data))) if data else {}


def as_object(value: JSON) -> dict[str, JSON]:
    """Return a JSON object, or an empty one for anything else."""
    return dict(value) if isinstance(value, Mapping) else {}
