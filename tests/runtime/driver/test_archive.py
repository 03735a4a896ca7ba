"""An archive is written out as it says, and nothing in it leads out of its folder."""

from __future__ import annotations

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from harnesslab.runtime.driver.archive import UnsafeArchive, write_out

Member = tuple[str, bytes, str]  # name, type, target or content


def archive(*members: Member, mode: int = 0o664) -> bytes:
    data = BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, text in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime = kind, mode, 1_700_000_000
            if kind == tarfile.REGTYPE:
                entry.size = len(text)
            else:
                entry.linkname = text
            tar.addfile(entry, BytesIO(text.encode()))
    return data.getvalue()


FILE, FOLDER, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE


def test_files_folders_and_links_inside_are_written_with_their_times_and_no_more_rights(tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        members = (
            ("bin", FOLDER, ""),
            ("bin/run", FILE, "#!"),
            ("deep/er/l", LINK, "../../bin/run"),
            ("up", LINK, "."),
        )
        write_out(archive(*members, mode=0o6777), tmp_path)
    finally:
        os.umask(umask)
    assert (tmp_path / "deep/er/l").read_text() == "#!"
    assert (tmp_path / "up/bin/run").stat().st_mode & 0o7777 == 0o755
    assert {path.stat().st_mode & 0o7777 for path in (tmp_path / "bin", tmp_path / "deep/er")} == {0o755}
    assert (tmp_path / "bin").stat().st_mtime == (tmp_path / "bin/run").stat().st_mtime == 1_700_000_000


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([("/etc/x", FILE, "x")], id="absolute name"),
        pytest.param([("../x", FILE, "x")], id="name upwards"),
        pytest.param([("a/../../x", FILE, "x")], id="name upwards inside"),
        pytest.param([("l", LINK, "/etc/passwd")], id="absolute link"),
        pytest.param([("a/l", LINK, "../../x")], id="link upwards"),
        pytest.param([("l", LINK, ".."), ("l/x", FILE, "x")], id="file through a link"),
        pytest.param([("l", LINK, "d"), ("l/x", LINK, "y")], id="link under a link"),
        pytest.param([("a/b/l", LINK, "../.."), ("m", LINK, "a/b/l/..")], id="links that leave together"),
        pytest.param([("m", LINK, "a/b/l/../x"), ("a/b/l", LINK, "../..")], id="links that leave, last first"),
        pytest.param([("a", LINK, "b"), ("b", LINK, "a")], id="links in a circle"),
        pytest.param([("x", FILE, "x"), ("h", tarfile.LNKTYPE, "x")], id="hard link"),
        pytest.param([("d", tarfile.CHRTYPE, "")], id="device"),
        pytest.param([("p", tarfile.FIFOTYPE, "")], id="pipe"),
        pytest.param([("x", FILE, "1"), ("x", FILE, "2")], id="a name twice"),
        pytest.param([("x", FILE, "1"), ("x", LINK, "y")], id="a link over a file"),
    ],
)
def test_what_leads_outside_or_is_no_file_is_refused_and_nothing_is_written_outside(
    members: list[Member], tmp_path: Path
) -> None:
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    with pytest.raises((UnsafeArchive, OSError)):
        write_out(archive(*members), folder)
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]
    assert not [path for path in folder.rglob("*") if path.is_symlink() and not path.resolve().is_relative_to(folder)]
