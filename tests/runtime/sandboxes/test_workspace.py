"""The work folder, filled by somebody who means harm."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harnesslab.core.running.ports import Limits, Place, SandboxRefused
from harnesslab.runtime.sandboxes.bubblewrap import BubblewrapSandbox
from harnesslab.runtime.sandboxes.inside.tree import END, FILE, FOLDER, HEADER, UP
from harnesslab.runtime.sandboxes.workspace import TarReader
from tests.runtime.sandboxes.conftest import Opener
from tests.runtime.sandboxes.test_isolation import still_works


def test_files_go_in_and_come_out(sandbox: BubblewrapSandbox) -> None:
    files = {"a.txt": b"one", "deep/er/b": b"\0\xff", "empty": b"", "-rf": b"dash", "new\nline": b"x", "ünïcode": b"u"}
    sandbox.write(files)
    assert sandbox.files() == files
    assert sandbox.run("cat deep/er/b | wc -c; stat -c '%a %Y' a.txt deep", timeout=10).output == (
        b"2\n644 1767225600\n755 1767225600\n"
    )
    sandbox.write({"a.txt": b"two"})
    assert sandbox.files()["a.txt"] == b"two"


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a//b", ".", "a\0b", "x" * 256, "\ud800"])
def test_paths_that_lead_elsewhere_are_refused(sandbox: BubblewrapSandbox, path: str) -> None:
    with pytest.raises(SandboxRefused, match="path of a file"):
        sandbox.write({path: b"x"})
    assert sandbox.files() == {}


def test_links_are_never_followed(sandbox: BubblewrapSandbox) -> None:
    sandbox.run(
        "ln -s /etc evil; ln -s /etc/passwd one; ln -s ../../../etc two; mkdir d; ln -s ../one d/three", timeout=10
    )
    assert sandbox.files() == {}
    with pytest.raises(SandboxRefused, match="'evil/harnesslab-test' can't be written"):
        sandbox.write({"evil/harnesslab-test": b"x"})
    assert not Path("/etc/harnesslab-test").exists()
    sandbox.write({"one": b"a file now"})
    assert sandbox.files() == {"one": b"a file now"}


def test_a_hard_link_is_not_written_through(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("echo old > a; ln a b", timeout=10)
    sandbox.write({"a": b"new"})
    assert sandbox.files() == {"a": b"new", "b": b"old\n"}


def test_a_folder_in_the_way_is_refused(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("mkdir a; touch b", timeout=10)
    for path in ("a", "b/c"):
        with pytest.raises(SandboxRefused, match="can't be written into the work folder"):
            sandbox.write({path: b"x"})


def test_pipes_and_sockets_block_nobody(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'", timeout=10)
    before = sandbox.state()
    assert sandbox.files() == {}
    sandbox.run("rm pipe; mkfifo -m 600 pipe", timeout=10)
    assert sandbox.state() != before


def test_what_is_closed_to_its_owner_is_read_and_stays_closed(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("mkdir -p d/e; echo x > d/e/f; chmod 0 d/e/f d/e d", timeout=10)
    assert sandbox.files() == {"d/e/f": b"x\n"}
    assert sandbox.state() == sandbox.state()
    assert sandbox.run("stat -c %a d; chmod 700 d; stat -c %a d/e", timeout=10).output == b"0\n0\n"


def test_names_that_are_no_text_survive(sandbox: BubblewrapSandbox) -> None:
    sandbox.run(["python3", "-c", "open(b'bad\\xff', 'w'); open('x' * 255, 'w')"], timeout=10)
    found = sandbox.files()
    assert set(found) == {"bad\udcff", "x" * 255}
    sandbox.write({"bad\udcff": b"again"})
    assert sandbox.files()["bad\udcff"] == b"again"


def test_the_state_is_names_kinds_modes_and_contents(opened: Opener) -> None:
    def state(command: str) -> str:
        sandbox = opened()
        sandbox.run(command, timeout=10)
        return sandbox.state()

    same = state("echo 1 > a; mkdir b; echo 2 > b/c")
    assert state("mkdir b; echo 2 > b/c; echo 1 > a; touch -d 2001-01-01 a; cp a x; rm x") == same
    others = {
        "content": "echo 9 > a; mkdir b; echo 2 > b/c",
        "name": "echo 1 > A; mkdir b; echo 2 > b/c",
        "mode": "echo 1 > a; mkdir b; echo 2 > b/c; chmod 600 a",
        "kind": "echo 1 > a; mkdir b; ln -s x b/c",
        "place": "echo 1 > a; echo 2 > c; mkdir b",
        "nothing": "true",
    }
    found = {state(command) for command in others.values()}
    assert len(found | {same}) == len(others) + 1


def test_a_hundred_thousand_files_are_read(sandbox: BubblewrapSandbox) -> None:
    make = (
        "import os\nfor d in range(100):\n    os.mkdir(str(d))\n    for n in range(1000): open(f'{d}/{n}', 'w').close()"
    )
    assert sandbox.run(["python3", "-c", make], timeout=60).exit_code == 0
    found = sandbox.files()
    assert len(found) == 100_000
    assert "99/999" in found
    assert still_works(sandbox)


def test_folders_deeper_than_any_path_are_no_trap(sandbox: BubblewrapSandbox) -> None:
    deep = "import os\nfor _ in range(3000): os.mkdir('dddd'); os.chdir('dddd')\n"
    sandbox.run(["python3", "-c", deep], timeout=30)
    assert sandbox.files() == {}
    before = sandbox.state()
    bottom = "import os\nfor _ in range(3000): os.chdir('dddd')\nopen('file', 'w')"
    sandbox.run(["python3", "-c", bottom], timeout=30)
    assert sandbox.state() != before
    with pytest.raises(SandboxRefused, match="a path longer than 4096 bytes"):
        sandbox.files()
    assert still_works(sandbox)


def test_sparse_files_do_not_fill_the_memory_of_the_worker(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(disk=8 << 20, file=6 << 20)))
    sandbox.run("truncate -s 6M a b c d", timeout=10)
    for read in (sandbox.files, sandbox.state):
        with pytest.raises(SandboxRefused, match="hold more than 8388608 bytes"):
            read()
    assert still_works(sandbox)


def test_times_are_the_same_after_each_command(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("mkdir -p d; echo x > d/f; ln -s f d/l; echo y > /tmp/t; mkfifo d/p", timeout=10)
    said = sandbox.run("stat -c %X-%Y . d d/f d/l d/p /tmp /tmp/t", timeout=10)
    assert set(said.output.split()) == {b"1767225600-1767225600"}


def test_the_pinned_clock_leaves_no_files(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("date; sleep 0 & sleep 0; wait", timeout=10)
    assert sandbox.run(
        ["python3", "-c", "import os; print(os.listdir('/work'), os.listdir('/tmp'))"], timeout=10
    ).output == (b"[] []\n")
    assert b"_3" not in sandbox.run("ls /dev/shm", timeout=10).output


def _entry(kind: bytes, name: bytes = b"", content: bytes = b"") -> bytes:
    return HEADER.pack(kind, 0o644, len(name), len(content)) + name + content


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (_entry(b"?"), "no work folder"),
        (_entry(UP), "no work folder"),
        (HEADER.pack(FOLDER, 0, 1, 5), "no work folder"),
        (HEADER.pack(FILE, 0, 60000, 5), "no work folder"),
        (HEADER.pack(FILE, 0, 1, 1 << 60), "hold more than"),
        (_entry(FILE, b"a", b"12345678") * 3, "hold more than"),
        (_entry(FILE, b"a") * 14, "more than 5 files"),
        (_entry(END) + b"x", "more than its work folder"),
    ],
)
def test_a_stream_that_lies_is_refused(stream: bytes, said: str) -> None:
    reader = TarReader(Limits(disk=16, file=10, files=5), lambda path, content: None)
    with pytest.raises(SandboxRefused, match=said):
        reader.feed(stream)


def test_a_stream_may_come_byte_by_byte() -> None:
    found: dict[str, bytes] = {}
    stream = _entry(FOLDER, b"d") + _entry(FILE, b"f", b"content") + _entry(UP) + _entry(FILE, b"g") + _entry(END)
    reader = TarReader(Limits(), found.__setitem__)
    for at in range(len(stream)):
        reader.feed(stream[at : at + 1])
    assert reader.ended
    assert found == {"d/f": b"content", "g": b""}
    assert reader.digest == hashlib.sha256(b"harnesslab.workspace/1\n" + stream).hexdigest()
