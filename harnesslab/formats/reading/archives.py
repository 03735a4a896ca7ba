"""Zip archives within bounds: no member escapes, none expands without limit, and a truncated one is searched.

Deflate and Zstandard members are read; the standard library's `zipfile` can't read the latter before 3.14.
"""

from __future__ import annotations

import io
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from backports.zstd import ZstdError, zipfile

from harnesslab.core.errors import FormatRefused, LimitExceeded

MAX_MEMBERS = 20_000
MAX_TOTAL = 4 * 2**30
"""Most bytes that an archive may expand to."""
MAX_RATIO = 250
"""Most that a member of more than `RATIO_FROM` bytes may expand by."""
RATIO_FROM = 16 * 2**20

_LOCAL = struct.Struct("<4s5H3I2H")
_SIGNATURE = b"PK\x03\x04"
_FAULTS = (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Archive:
    """The readable members of a zip file by name, in the order they were written."""

    name: str
    data: bytes
    members: dict[str, zipfile.ZipInfo]
    whole: bool
    """False where the central directory is missing and members were searched for."""

    def read(self, member: str) -> bytes:
        """Return a member's bytes; raises `FormatRefused` where it is damaged."""
        info = self.members[member]
        try:
            if not self.whole:
                return _salvaged(self.data, info)
            with zipfile.ZipFile(io.BytesIO(self.data)) as archive, archive.open(info) as stream:
                data = stream.read(info.file_size + 1)  # a byte more than stated shows, without reading all of it
        except _FAULTS as error:
            raise FormatRefused(f"the member is damaged: {error}", where=f"{self.name}: {member}") from error
        if len(data) > info.file_size:
            raise FormatRefused("the member is larger than the archive says", where=f"{self.name}: {member}")
        return data


def open_archive(data: bytes, name: str) -> Archive:
    """List a zip file's members; raises `FormatRefused` for unsafe names and `LimitExceeded` beyond the bounds."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found, whole = archive.infolist(), True
    except _FAULTS:
        found, whole = list(_local_members(data)), False
    if not found:
        raise FormatRefused("a zip archive without a whole member", where=name, hint="the file may be cut off")
    if len(found) > MAX_MEMBERS:
        raise LimitExceeded(f"{len(found):,} members, more than the limit of {MAX_MEMBERS:,}", where=name)
    files = {info.filename: info for info in found if not info.is_dir()}
    for info in files.values():
        _check(info, name)
    total = sum(info.file_size for info in files.values())
    if total > MAX_TOTAL:
        raise LimitExceeded(f"expands to {total:,} bytes, more than the limit of {MAX_TOTAL:,}", where=name)
    return Archive(name, data, files, whole)


def _check(info: zipfile.ZipInfo, name: str) -> None:
    path = info.filename
    parts = PurePosixPath(path.replace("\\", "/")).parts
    if not parts or path.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise FormatRefused(f"the member {path[:200]!r} would leave the archive", where=name)
    if stat.S_ISLNK(info.external_attr >> 16):
        raise FormatRefused(f"the member {path[:200]!r} is a symbolic link", where=name)
    if info.flag_bits & 1:
        raise FormatRefused(f"the member {path[:200]!r} is encrypted", where=name)
    if info.file_size > RATIO_FROM and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise LimitExceeded(
            f"the member {path[:200]!r} expands more than {MAX_RATIO} times to {info.file_size:,} bytes", where=name
        )


def _local_members(data: bytes) -> Iterator[zipfile.ZipInfo]:
    """Yield the whole members of an archive without a central directory, by their local headers."""
    at = data.find(_SIGNATURE)
    while at >= 0 and at + _LOCAL.size <= len(data):
        _, _, flags, method, _, _, crc, packed, size, name_length, extra = _LOCAL.unpack_from(data, at)
        start = at + _LOCAL.size + name_length + extra
        # sizes that only follow the data, or are in a zip64 field: its end can't be told without the directory
        if flags & 8 or packed == 0xFFFFFFFF or size == 0xFFFFFFFF or start + packed > len(data):
            at = data.find(_SIGNATURE, at + 4)
            continue
        encoded = data[at + _LOCAL.size : at + _LOCAL.size + name_length]
        info = zipfile.ZipInfo(encoded.decode("utf-8", "replace") or "unnamed")
        info.compress_type, info.flag_bits, info.CRC = method, flags, crc
        info.compress_size, info.file_size, info.header_offset = packed, size, start
        yield info
        at = data.find(_SIGNATURE, start + packed)


def _salvaged(data: bytes, info: zipfile.ZipInfo) -> bytes:
    """Expand one member found by its local header; its `header_offset` is where its data begins."""
    packed = data[info.header_offset : info.header_offset + info.compress_size]
    rebuilt = io.BytesIO()
    local = info.FileHeader(zip64=False)
    rebuilt.write(local)
    rebuilt.write(packed)
    with zipfile.ZipFile(io.BytesIO(_with_directory(rebuilt.getvalue(), info))) as archive:
        return bytes(archive.read(info.filename))


def _with_directory(body: bytes, info: zipfile.ZipInfo) -> bytes:
    """Append the central directory that a one-member archive needs."""
    name = info.filename.encode()
    version = 63
    entry = struct.pack(
        "<4s6H3I5H2I",
        b"PK\x01\x02",
        version,
        version,
        info.flag_bits,
        info.compress_type,
        0,
        0,
        info.CRC,
        info.compress_size,
        info.file_size,
        len(name),
        0,
        0,
        0,
        0,
        0,
        0,
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) + len(name), len(body), 0)
    return body + entry + name + end
