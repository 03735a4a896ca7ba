"""Paths that are no plain files, and files that are no plain text: none hangs, none ends the whole import."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.core.canonical import bytes_digest
from harnesslab.core.errors import FormatRefused, LimitExceeded, NotFound
from harnesslab.formats.discovery import discover, expand
from harnesslab.formats.reading import inputs
from harnesslab.formats.reading.inputs import InputFile, Report

LINE = '{"rollout": {"schema": "harnesslab.trace/1", "case": "c", "outcome": "solved"}}\n'


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """End a test that waits for a pipe."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refusal(path: Path) -> str:
    (unit,) = discover([path])
    with pytest.raises(FormatRefused) as caught:
        list(expand(unit))
    return caught.value.sentence


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    (unit,) = discover([device])
    with pytest.raises(FormatRefused):
        list(expand(unit))


def test_a_folder_of_odd_things_is_read_and_each_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "self").symlink_to(tmp_path)
    (tmp_path / "out").symlink_to("/etc/hostname")
    (tmp_path / "good.jsonl").write_text(LINE)
    report = Report()
    assert [unit.name for unit in discover([tmp_path], report)] == ["good.jsonl"]
    assert sorted(item.where for item in report.skipped) == ["a", "b", "gone", "out", "pipe", "self"]


@pytest.mark.parametrize(
    "name", [b"new\nline.jsonl", b"sur\xff\xfe.jsonl", b"esc\x1b[31m.jsonl", b"a" * 249 + b".jsonl"]
)
def test_every_name_is_read(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(LINE)
    (unit,) = discover([tmp_path])
    assert unit.only.read() == LINE.encode()
    unit.digest()


@pytest.mark.parametrize("path", ["", "no\x00where", "n" * 5000, "no\udcffwhere"])
def test_a_path_that_can_not_be_is_not_found(path: str) -> None:
    with pytest.raises(NotFound):
        list(discover([path]))


def test_a_file_that_is_gone_when_it_is_read_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.jsonl"
    place.write_text(LINE)
    (unit,) = discover([place])
    place.unlink()
    with pytest.raises(FormatRefused, match="No such file"):
        unit.in_memory()


def test_what_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal of the system is put in its place."""
    place = tmp_path / "secret.jsonl"
    place.write_text(LINE)
    (tmp_path / "closed").mkdir()
    listed = Path.iterdir

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    def closed(folder: Path) -> Iterator[Path]:
        return denied() if folder.name == "closed" else listed(folder)  # type: ignore[return-value]

    report = Report()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", closed)
        (unit,) = discover([tmp_path], report)
    assert [item.where for item in report.skipped] == ["closed"]
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(FormatRefused, match=r"secret\.jsonl: can't be read: Permission denied"):
        unit.in_memory()


def test_a_file_that_grows_beyond_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILE", 1000)
    place = tmp_path / "a.jsonl"
    place.write_text(LINE)
    file = InputFile.of_path(place)
    place.write_text(LINE * 100)
    with pytest.raises(LimitExceeded):
        file.read()


def test_a_file_that_changes_while_it_is_read_keeps_one_digest(tmp_path: Path) -> None:
    place = tmp_path / "a.jsonl"
    place.write_text(LINE * 1000)
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            place.write_text(LINE * 900)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        for _ in range(50):
            (unit,) = discover([place])
            held = unit.in_memory()
            assert held.digest() == bytes_digest(held.only.read())
    finally:
        stop.set()
        thread.join()
