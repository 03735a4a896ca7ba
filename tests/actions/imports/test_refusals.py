"""A session that is kept in many files is refused once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.actions.imports.importing import ImportResult, import_units
from harnesslab.actions.imports.refusals import together
from harnesslab.formats.discovery import discover

pytestmark = pytest.mark.django_db


def made(folder: Path, files: dict[str, str]) -> list[ImportResult]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return list(together(import_units(discover([folder]))))


def test_a_folder_of_one_session_is_refused_once(tmp_path: Path) -> None:
    parts = {f"part/prt_{number}.json": '{"sessionID": "s", "messageID": "m"}' for number in range(3)}
    (result,) = made(tmp_path / "session", parts)
    assert (result.status, result.file) == ("refused", "session/part/")
    assert result.reason.startswith("session/part: 3 files (prt_0.json to prt_2.json): an OpenCode session")


def test_what_has_other_reasons_or_neighbours_that_were_imported_is_refused_apart(tmp_path: Path) -> None:
    chat = '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
    mixed = made(tmp_path / "mixed", {"a.md": "# A\n", "b.md": "# B\n", "c.yaml": "a: 1\nb: 2\n"})
    assert [result.file for result in mixed] == ["mixed/", "c.yaml"]
    beside = made(tmp_path / "beside", {"1.json": chat, "2.md": "# A\n", "3.md": "# B\n"})
    assert [result.file for result in beside] == ["1.json", "2.md", "3.md"]
