"""The head of a GGUF file: enough of it to name the model and to digest its tokenizer."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harnesslab.core.errors import FormatRefused

_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of each type of number."""
_TEXT, _ARRAY = 8, 9
_MOST_ENTRIES = 10_000
_LONGEST_TEXT = 16 * 1024 * 1024
_MOST_ITEMS = 4_000_000


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a model file says."""

    name: str
    tokenizer: str
    """SHA-256 over everything of the tokenizer but the chat template, in the order of the file."""


def read_head(path: Path) -> Head:
    """Read the head; raises `FormatRefused` for what is no GGUF file of version 2 or 3."""
    try:
        with path.open("rb") as file:
            return _head(file)
    except (struct.error, OSError) as error:
        raise FormatRefused(f"can't be read as GGUF: {error}", where=path.name) from error


def _head(file: BinaryIO) -> Head:
    magic, version, _tensors, entries = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF" or version not in (2, 3) or entries > _MOST_ENTRIES:
        raise FormatRefused("not a GGUF file of version 2 or 3")
    digest, name = hashlib.sha256(), ""
    for _ in range(entries):
        key = _text(file)
        begin = file.tell()
        _skip(file, _whole(file, "<I"))
        end = file.tell()
        file.seek(begin)
        value = file.read(end - begin)
        if key == b"general.name" and value[:4] == struct.pack("<I", _TEXT):
            name = value[12:].decode("utf-8", "replace")
        if key.startswith(b"tokenizer.") and b"chat_template" not in key:
            digest.update(struct.pack("<Q", len(key)) + key + struct.pack("<Q", len(value)) + value)
    return Head(name, digest.hexdigest())


def _skip(file: BinaryIO, kind: int) -> None:
    if kind in _SCALARS:
        file.seek(_SCALARS[kind], 1)
    elif kind == _TEXT:
        _text(file)
    elif kind == _ARRAY:
        item, count = _whole(file, "<I"), _whole(file, "<Q")
        if count > _MOST_ITEMS or item == _ARRAY:
            raise FormatRefused("a GGUF list that no model has")
        if item in _SCALARS:
            file.seek(_SCALARS[item] * count, 1)
        else:
            for _ in range(count):
                _skip(file, item)
    else:
        raise FormatRefused(f"a GGUF value of unknown type {kind}")


def _text(file: BinaryIO) -> bytes:
    length = _whole(file, "<Q")
    if length > _LONGEST_TEXT:
        raise FormatRefused("a GGUF text that no model has")
    return file.read(length)


def _whole(file: BinaryIO, form: str) -> int:
    return int(struct.unpack(form, file.read(struct.calcsize(form)))[0])
