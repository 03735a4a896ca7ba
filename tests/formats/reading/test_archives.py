"""Zip archives are read within bounds."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest
from backports.zstd import zipfile as zstd_zipfile

from harnesslab.core.errors import FormatRefused, LimitExceeded
from harnesslab.formats.reading import archives
from harnesslab.formats.reading.archives import open_archive
from tests.formats.making import zipped


def test_members_are_listed_in_order_and_read() -> None:
    archive = open_archive(zipped({"b.txt": "two", "a.txt": "one"}), "x.zip")
    assert list(archive.members) == ["b.txt", "a.txt"]
    assert archive.read("a.txt") == b"one"


def test_zstandard_members_are_read() -> None:
    out = io.BytesIO()
    with zstd_zipfile.ZipFile(out, "w", zstd_zipfile.ZIP_ZSTANDARD) as archive:
        archive.writestr("a.txt", "one " * 100)
    assert open_archive(out.getvalue(), "x.eval").read("a.txt") == b"one " * 100


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.json", "a/../../up.json", "..\\up.json", "C:\\x.json"])
def test_a_member_that_would_leave_the_archive_is_refused_by_name(name: str) -> None:
    with pytest.raises(FormatRefused, match="would leave the archive"):
        open_archive(zipped({name: "x"}), "x.zip")


def test_a_symbolic_link_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FormatRefused, match="symbolic link"):
        open_archive(out.getvalue(), "x.zip")


def test_a_member_that_expands_too_far_is_refused_with_the_bound() -> None:
    bomb = zipped({"zeros": bytes(archives.RATIO_FROM + 1)})
    with pytest.raises(LimitExceeded, match="expands more than 250 times"):
        open_archive(bomb, "x.zip")


def test_too_many_members_or_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({"a": "1" * 100, "b": "2" * 100})
    monkeypatch.setattr(archives, "MAX_TOTAL", 150)
    with pytest.raises(LimitExceeded, match="expands to 200 bytes"):
        open_archive(data, "x.zip")
    monkeypatch.setattr(archives, "MAX_MEMBERS", 1)
    with pytest.raises(LimitExceeded, match="2 members"):
        open_archive(data, "x.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, 93])
def test_whole_members_of_a_cut_archive_are_found(method: int) -> None:
    out = io.BytesIO()
    with zstd_zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("first", "one " * 50)
        archive.writestr("second", "two " * 50)
    data = out.getvalue()
    cut = open_archive(data[: data.index(b"second") + 10], "x.eval")
    assert not cut.whole
    assert {name: cut.read(name) for name in cut.members} == {"first": b"one " * 50}


def test_a_damaged_member_is_a_refusal_that_names_it() -> None:
    data = zipped({"a.json": "one " * 200})
    start = data.index(b"a.json") + len(b"a.json")
    broken = open_archive(data[:start] + b"\xff" * 5 + data[start + 5 :], "x.eval")
    with pytest.raises(FormatRefused, match=r"x\.eval: a\.json: the member is damaged"):
        broken.read("a.json")


def test_an_archive_without_a_whole_member_is_refused() -> None:
    with pytest.raises(FormatRefused, match="without a whole member"):
        open_archive(b"PK\x03\x04garbage", "x.zip")
