"""Canonical JSON (RFC 8785) and SHA-256 digests: the one module that hashes.

Three inputs that RFC 8785 refuses are written in a fixed form, so that nothing recorded is lost or fatal:
integers that no double prints as and non-finite numbers become ``{"$number": "<text>"}``, and lone surrogates
are escaped as ECMAScript's well-formed ``JSON.stringify`` does. Writing, reading and writing gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NewType

import msgspec
import rfc8785

from harnesslab.core.errors import NotCanonical

if TYPE_CHECKING:
    from typing import TypeAlias

    JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
else:  # msgspec resolves annotations at run time and can't follow a recursive alias
    JSON = Any

Digest = NewType("Digest", str)
"""A SHA-256 as 64 lower-case hexadecimal digits."""

MAX_DEPTH = 200
_SAFE_INTEGER = 2**53 - 1
_LONGEST_INTEGER = 10**21
"""ECMAScript prints doubles from here on with an exponent."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder(order="sorted")


def sha256(data: bytes) -> bytes:
    """Return the 32-byte SHA-256 of `data`."""
    return hashlib.sha256(data).digest()


def bytes_digest(data: bytes) -> Digest:
    """Return the digest of bytes as they are."""
    return Digest(hashlib.sha256(data).hexdigest())


def digest(value: JSON) -> Digest:
    """Return the digest of a value's canonical bytes."""
    return bytes_digest(canonical_bytes(value))


def canonical_bytes(value: JSON) -> bytes:
    """Return the canonical UTF-8 bytes of a JSON value; raises `NotCanonical` for anything else.

    Most values take a fast path through msgspec's encoder, which agrees with RFC 8785 for them; a property test
    holds the two together.
    """
    if _is_plain(value, MAX_DEPTH):
        try:
            return _ENCODER.encode(value)
        except UnicodeEncodeError:
            pass
    try:
        return rfc8785.dumps(_representable(value, MAX_DEPTH))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return _escaped_surrogates(value)


def parse(data: bytes | str) -> JSON:
    """Read JSON, tolerating NaN, infinities and lone surrogates; raises `ValueError` for anything else."""
    try:
        decoded: JSON = _DECODER.decode(data)
        return decoded
    except (msgspec.DecodeError, UnicodeError):
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
        try:
            value: JSON = json.loads(text, parse_int=integer)
            return value
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def integer(digits: str) -> JSON:
    """Return the integer of a JSON text; one of more digits than the interpreter reads stays its canonical text."""
    try:
        return int(digits)
    except ValueError:
        return {"$number": digits}


def in_order(value: Mapping[str, JSON]) -> list[tuple[str, JSON]]:
    """Return an object's items by name, for what must not depend on the order of keys."""
    return sorted(value.items(), key=lambda item: item[0])


def nested_within(value: JSON, depth: int) -> bool:
    """Say whether parsed JSON is nested at most `depth` levels."""
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(nested_within(item, depth - 1) for item in items)


def _is_plain(value: JSON, depth: int) -> bool:
    """Say whether msgspec's encoder writes `value` exactly as RFC 8785 would."""
    # Where the two part: the order of keys beyond ASCII (UTF-16 units there), floats that are whole or have an exponent
    # (ECMAScript's form there), and integers beyond 2^53 - 1.
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is dict:
        return depth > 0 and _plain_object(value, depth - 1)  # type: ignore[arg-type]
    if isinstance(value, int):
        return -_SAFE_INTEGER <= value <= _SAFE_INTEGER
    if isinstance(value, float):
        return 1e-4 <= abs(value) < 1e16 and not value.is_integer()
    if depth == 0:
        raise NotCanonical(f"JSON nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list | tuple):
        return all(not (type(item) is not str and not _is_plain(item, depth - 1)) for item in value)
    return isinstance(value, str)


def _plain_object(value: dict[str, JSON], depth: int) -> bool:
    for key, item in value.items():
        if type(key) is not str or not key.isascii() or (type(item) is not str and not _is_plain(item, depth)):
            return False
    return True


def _representable(value: JSON, depth: int) -> JSON:
    """Replace the numbers that RFC 8785 refuses by their tagged text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -_SAFE_INTEGER <= value <= _SAFE_INTEGER else _large(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$number": _non_finite(value)}
    if depth == 0:
        raise NotCanonical(f"JSON nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise NotCanonical(f"an object key is a {type(key).__name__}, not a string")
        return {key: _representable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_representable(item, depth - 1) for item in value]
    raise NotCanonical(f"a {type(value).__name__} is not a JSON value")


def with_numbers(value: JSON) -> JSON:
    """Return a value with tagged numbers as numbers again; its canonical form stays the same."""
    match value:
        case {"$number": str(text), **rest} if not rest:
            try:
                return int(text) if text.lstrip("-").isdigit() else float(text)
            except ValueError:
                return value
        case Mapping():
            return {name: with_numbers(item) for name, item in value.items()}
        case list():
            return [with_numbers(item) for item in value]
    return value


def _large(value: int) -> JSON:
    """Return the double that prints as these digits, or the digits as tagged text where none does."""
    try:
        digits = str(value)
    except ValueError as error:  # the interpreter's limit of digits
        raise NotCanonical("an integer of more digits than can be written") from error
    if abs(value) < _LONGEST_INTEGER and rfc8785.dumps(float(value)).decode() == digits:
        return float(value)
    return {"$number": digits}


def _non_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _escaped_surrogates(value: JSON) -> bytes:
    """Write a value that holds lone surrogates, each as its escape; all else as RFC 8785 would."""

    def text(item: str) -> str:
        whole = item.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # joins split pairs
        quoted = json.dumps(whole, ensure_ascii=False)
        return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)

    def write(item: JSON) -> str:
        if isinstance(item, str):
            return text(item)
        if isinstance(item, Mapping):
            ordered = sorted(item.items(), key=lambda entry: entry[0].encode("utf-16-be", "surrogatepass"))
            return "{" + ",".join(f"{text(key)}:{write(entry)}" for key, entry in ordered) + "}"
        if isinstance(item, Sequence):
            return "[" + ",".join(map(write, item)) + "]"
        return rfc8785.dumps(item).decode()

    return write(_representable(value, MAX_DEPTH)).encode()
