"""Reading the body of a request within bounds of size and time."""

from __future__ import annotations

import time
from email.message import Message
from typing import BinaryIO, Protocol

LONGEST = 16 * 1024 * 1024
"""Bytes of one body."""
BODY_S = 120.0
"""Seconds that one body may take to come."""
_PIECE = 1 << 16
_LINE = 1024


class Bad(Exception):
    """A body that is not read."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence, self.status = sentence, status


class BodyBudget(Protocol):
    """Bounds the bytes of bodies that are held at once, over all connections."""

    def take(self, count: int) -> bool:
        """Reserve a number of bytes; False where there are not so many left."""

    def give_back(self, count: int) -> None:
        """Release reserved bytes."""


def read_body(source: BinaryIO, headers: Message, held: BodyBudget) -> tuple[bytes, int]:
    """Return a body and the bytes taken for it, which the caller gives back; raises `Bad`."""
    lengths, coding = headers.get_all("Content-Length", []), headers.get("Transfer-Encoding", "")
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Bad("the body is compressed, which the gateway does not take", 415)
    if coding:
        # where two lengths are stated, what one reader takes for the body is the next request for another
        if lengths or coding.strip().lower() != "chunked":
            raise Bad("the length of the body is ambiguous")
        return _chunked(source, held)
    # `isascii`, since `isdigit` also says yes to digits that `int` refuses, such as superscripts
    if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 18:
        raise Bad("a request needs one Content-Length", 411 if not lengths else 400)
    return _whole(source, int(lengths[0]), held)


def _whole(source: BinaryIO, length: int, held: BodyBudget) -> tuple[bytes, int]:
    _take(length, 0, held)  # before the first byte: what is promised at once can also be sent at once
    try:
        data = bytearray()
        _fill(source, data, length, time.monotonic() + BODY_S)
        return bytes(data), length
    except BaseException:
        held.give_back(length)
        raise


def _chunked(source: BinaryIO, held: BodyBudget) -> tuple[bytes, int]:
    data, taken, deadline = bytearray(), 0, time.monotonic() + BODY_S
    try:
        while size := _size(source.readline(_LINE)):
            _take(size, taken, held)
            taken += size
            _fill(source, data, size, deadline)
            if source.readline(_LINE).strip():
                raise Bad("a chunk of the body is longer than it says")
        while source.readline(_LINE).strip():
            _in_time(deadline)
        return bytes(data), taken
    except BaseException:
        held.give_back(taken)
        raise


def _size(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    if not text or len(text) > 8 or any(char not in b"0123456789abcdefABCDEF" for char in text):
        raise Bad("a chunk of the body has no size")
    return int(text, 16)


def _take(count: int, before: int, held: BodyBudget) -> None:
    if before + count > LONGEST:
        raise Bad(f"the body is longer than {LONGEST // 2**20} MiB", 413)
    if not held.take(count):
        raise Bad("too much is being sent at once", 503)


def _fill(source: BinaryIO, data: bytearray, count: int, deadline: float) -> None:
    left = count
    while left:
        # not `read`, which waits for all of it: a client that drips would never meet the deadline
        piece = source.read1(min(left, _PIECE))  # type: ignore[attr-defined]
        if not piece:
            raise Bad("the body ended before its length")
        data += piece
        left -= len(piece)
        _in_time(deadline)


def _in_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Bad(f"the body took longer than {BODY_S:.0f} s", 408)
