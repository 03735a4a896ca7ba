"""Messages between a sandbox and its worker: a length, then JSON, with open files beside the first byte."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

MOST_FILES = 3
LENGTH = struct.Struct(">I")


class BrokenFrame(Exception):
    """The other side sent something that is no message."""


def send(channel: socket.socket, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
    """Send one message, with open files that the other side gets as its own."""
    body = json.dumps(message).encode()
    data = memoryview(LENGTH.pack(len(body)) + body)
    # what a socket takes at once may be less than all; the files go beside the first byte and must not be sent again
    sent = socket.send_fds(channel, [data], list(fds)) if fds else channel.send(data)
    channel.sendall(data[sent:])


def receive(channel: socket.socket, bound: int) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message of at most `bound` bytes and its open files, or None where the other side is gone."""
    head, fds = _head(channel)
    try:
        head += _exactly(channel, LENGTH.size - len(head)) if head else b""
        if not head:
            return None
        size = LENGTH.unpack(head)[0]
        if size > bound:
            raise BrokenFrame(f"a message of {size} bytes")
        message = json.loads(_exactly(channel, size))
    except (ValueError, RecursionError) as error:
        close(fds)
        raise BrokenFrame(str(error)) from error
    if not isinstance(message, dict):
        close(fds)
        raise BrokenFrame("a message that is no object")
    return message, fds


def close(fds: Sequence[int]) -> None:
    """Close open files."""
    for fd in fds:
        os.close(fd)


def _head(channel: socket.socket) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(MOST_FILES * struct.calcsize("i"))
    data, beside, _, _ = channel.recvmsg(LENGTH.size, room, socket.MSG_CMSG_CLOEXEC)  # a command inherits none
    fds = array.array("i")
    for level, kind, content in beside:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        more = channel.recv(size - len(parts))
        if not more:
            raise BrokenFrame("a message cut short")
        parts += more
    return bytes(parts)
