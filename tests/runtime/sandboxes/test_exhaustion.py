"""Commands that want everything: memory, processes, disk, files, output. Each is ended, and the next one works."""

from __future__ import annotations

import time

import pytest

from harnesslab.core.running.ports import Limits, Place
from harnesslab.runtime.sandboxes import commands, watcher
from harnesslab.runtime.sandboxes.bubblewrap import BubblewrapSandbox
from tests.runtime.sandboxes.conftest import Opener
from tests.runtime.sandboxes.test_isolation import python, still_works

MIB = 2**20


def test_one_process_gets_no_more_memory_than_the_limit(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(memory=200 * MIB)))
    assert "MemoryError" in python(sandbox, "bytearray(400 << 20)")
    assert still_works(sandbox)


def test_processes_together_get_no_more_memory_than_the_limit(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(memory=150 * MIB)))
    hold = "python3 -c 'import time; x = b\"x\" * (60 << 20); time.sleep(60)'"
    found = sandbox.run(f"for i in 1 2 3 4 5 6; do {hold} & done; wait", timeout=50)
    assert found.error == "The command held more memory than 150 MiB."
    assert found.exit_code is None
    assert still_works(sandbox)


def test_memory_that_processes_share_is_counted_once(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(memory=150 * MIB)))
    share = (
        "import os, time\nx = bytearray(80 << 20)\n"
        "for _ in range(4):\n    if not os.fork():\n        time.sleep(1); os._exit(0)\n"
        "for _ in range(4): os.wait()\nprint('shared')"
    )
    assert python(sandbox, share) == "shared\n"


def test_processes_are_found_also_where_the_kernel_lists_no_children(
    sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = sandbox._box.pid
    listed = set(watcher._tree(pid))
    assert len(listed) == 3  # bubblewrap, init and the server
    monkeypatch.setattr(watcher, "_KERNEL_LISTS_CHILDREN", False)
    assert set(watcher._tree(pid)) == listed


def test_a_fork_bomb_is_ended_and_hurts_no_neighbour(opened: Opener) -> None:
    sandbox, neighbour = (opened(Place(limits=Limits(processes=40))) for _ in range(2))
    found = sandbox.run(":(){ :|:& };: ; sleep 1; echo over; exec sleep 30", timeout=2)
    assert found.timed_out
    assert still_works(neighbour)
    assert still_works(sandbox)


def test_no_more_processes_than_the_limit(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(processes=20)))
    count = (
        "import os, signal\nn = 0\n"
        "try:\n    while n < 200:\n        os.fork() or signal.pause()\n        n += 1\n"
        "except OSError:\n    print(n)"
    )
    said = python(sandbox, count)
    assert 15 <= int(said) <= 20
    assert still_works(sandbox)


def test_a_full_disk_is_said_to_the_command_alone(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(disk=32 * MIB)))
    for folder in ("/work", "/tmp", "/dev/shm"):
        found = sandbox.run(f"head -c 100M /dev/zero > {folder}/big", timeout=20)
        assert b"No space left on device" in found.output
    assert still_works(sandbox)
    used = sandbox.run("du -cb /work/big /tmp/big /dev/shm/big | tail -1", timeout=10)
    assert int(used.output.split()[0]) <= 32 * MIB


def test_a_file_stays_under_its_limit(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(file=MIB)))
    found = sandbox.run(["head", "-c", "10M", "/dev/zero"], timeout=10)
    assert found.exit_code == 0  # output is no file
    found = sandbox.run(["dd", "if=/dev/zero", "of=big", "bs=64K", "count=100"], timeout=10)
    assert found.error == "The command wrote a file larger than 1 MiB."
    assert sandbox.run("truncate -s 1T sparse", timeout=10).exit_code != 0
    assert {name: len(content) for name, content in sandbox.files().items()} in (
        {"big": MIB, "sparse": 0},
        {"big": MIB},
    )


def test_files_without_content_are_counted(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(files=1000)))
    found = sandbox.run("i=0; while :; do i=$((i + 1)); : > f$i; done", timeout=30)
    assert found.error == "The command made more than 1000 files."
    assert still_works(sandbox)
    assert sandbox.run("rm -f f*", timeout=10).error is None


def test_output_without_end_is_ended(sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "WHOLE_OUTPUT", 4 * MIB)
    found = sandbox.run("yes", timeout=60)
    assert found.error == "The command put out more than 4 MiB."
    assert found.size > 4 * MIB
    assert still_works(sandbox)


def test_a_command_that_closes_its_output_is_waited_for(sandbox: BubblewrapSandbox) -> None:
    began = time.monotonic()
    found = sandbox.run("exec >&- 2>&-; sleep 0.3; exit 7", timeout=10)
    assert found.exit_code == 7
    assert time.monotonic() - began >= 0.3
