"""Sandboxes that die or stop answering: one sentence, and nobody waits for ever."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harnesslab.core.running.ports import Place, SandboxRefused
from harnesslab.runtime.sandboxes import attending, layout, watcher
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap, BubblewrapSandbox
from tests.runtime.sandboxes.conftest import Opener

pytestmark = pytest.mark.serial
LOST = "The sandbox was lost: it was ended from outside."


def _pid(sandbox: BubblewrapSandbox) -> int:
    return sandbox._box.pid


def _server(sandbox: BubblewrapSandbox) -> int:
    """The server's process, seen from the machine: bubblewrap's child's child."""
    return list(watcher._tree(_pid(sandbox)))[2]


def test_a_killed_sandbox_is_lost_in_one_sentence(sandbox: BubblewrapSandbox) -> None:
    os.kill(_pid(sandbox), signal.SIGKILL)
    first, second = (sandbox.run("echo x", timeout=5) for _ in range(2))
    # what is inside dies a moment after what was killed, so that the first command may still have put something out
    assert (first.error, first.exit_code) == (LOST, None)
    assert (second.error, second.exit_code, second.output) == (LOST, None, b"")
    for act in (sandbox.files, sandbox.state, lambda: sandbox.write({"a": b"x"})):
        with pytest.raises(SandboxRefused, match="The sandbox was lost"):
            act()


def test_a_sandbox_killed_under_a_command_keeps_the_output(sandbox: BubblewrapSandbox) -> None:
    threading.Timer(0.5, os.kill, (_pid(sandbox), signal.SIGKILL)).start()
    found = sandbox.run("echo begun; sleep 100", timeout=60)
    assert (found.error, found.output, found.timed_out) == (LOST, b"begun\n", False)


def test_a_server_that_is_killed_is_lost(sandbox: BubblewrapSandbox) -> None:
    threading.Timer(0.5, os.kill, (_server(sandbox), signal.SIGKILL)).start()
    assert sandbox.run("sleep 100", timeout=60).error == LOST


def test_a_server_that_stopped_answering_is_ended(sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attending, "GRACE_SECONDS", 0.3)
    os.kill(_server(sandbox), signal.SIGSTOP)
    found = sandbox.run("echo never", timeout=0.3)
    assert found.timed_out
    assert found.error == "It was ended after 0.3 seconds."
    assert sandbox.run("true", timeout=1).error == "It was ended after 0.3 seconds."


def test_closing_under_a_command_ends_it(sandbox: BubblewrapSandbox) -> None:
    threading.Timer(0.5, sandbox.close).start()
    assert sandbox.run("sleep 100", timeout=60).exit_code is None


def test_closing_ends_every_process(opened: Opener) -> None:
    sandbox = opened()
    thread = threading.Thread(target=sandbox.run, args=("setsid -f sleep 100; sleep 100",), kwargs={"timeout": 60})
    thread.start()
    _until(lambda: len(list(watcher._tree(_pid(sandbox)))) >= 5)
    pids = list(watcher._tree(_pid(sandbox)))
    sandbox.close()
    thread.join(20)
    assert not thread.is_alive()
    _until(lambda: not any(_alive(pid) for pid in pids))


def test_a_killed_worker_takes_its_sandboxes_with_it() -> None:
    code = (
        "import threading, time\n"
        "from harnesslab.core.running.ports import Place\n"
        "from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap\n"
        "made = []\n"
        "thread = threading.Thread(target=lambda: made.append(Bubblewrap().open(Place())))\n"
        "thread.start(); thread.join()\n"
        "assert made[0].run('true', timeout=10).exit_code == 0  # the thread that asked for it is gone\n"
        "print(made[0]._box.pid, flush=True)\n"
        "made[0].run('setsid -f sleep 100; sleep 100', timeout=100)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        _until(lambda: len(list(watcher._tree(pid))) >= 5)
        pids = list(watcher._tree(pid))
        worker.kill()
    _until(lambda: not any(_alive(pid) for pid in pids))


def test_a_forked_worker_opens_sandboxes_of_its_own(sandbox: BubblewrapSandbox) -> None:
    pid = os.fork()
    if not pid:
        try:
            inner = Bubblewrap().open(Place())
            os._exit(0 if inner.run("true", timeout=10).exit_code == 0 else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sandbox.run("true", timeout=10).exit_code == 0


def test_no_open_file_and_no_user_is_left_behind(opened: Opener) -> None:
    opened().close()
    gc.collect()  # what tests before left to it, such as a client's connections
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        sandbox = opened()
        sandbox.run("echo x", timeout=10)
        sandbox.files()
        sandbox.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_bubblewrap_that_fails_says_why(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_namespaces", lambda held, user: ["--ro-bind", "/no/such/place", "/x"])
    with pytest.raises(SandboxRefused, match=r"No sandbox can be made here: bwrap: .*No such file"):
        opened()
    assert "No such file" in Bubblewrap().unavailable()


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "bubblewrap", lambda: "")
    assert Bubblewrap().unavailable() == "bubblewrap is not installed (on Debian: apt-get install bubblewrap)."
    with pytest.raises(SandboxRefused, match="bubblewrap is not installed"):
        Bubblewrap().open(Place())


def test_another_system_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert Bubblewrap().unavailable() == "bubblewrap sandboxes need Linux."


def test_a_bubblewrap_that_can_not_start_is_refused(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "bubblewrap", lambda: "/no/such/bwrap")
    with pytest.raises(SandboxRefused, match="bubblewrap can't be started: No such file"):
        opened()


def test_all_user_ids_taken_is_said(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    from harnesslab.runtime.sandboxes import users

    for name in ("FIRST", "LAST"):  # a range that no other run on this machine takes from
        monkeypatch.setattr(users, name, 1_000_000 + os.getpid())
    first = users.SandboxUser()
    with pytest.raises(SandboxRefused, match="All 1 user ids for sandboxes are taken"):
        users.SandboxUser()
    first.give_back()
    users.SandboxUser().give_back()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z"
    except OSError:
        return False


def _until(true: object, seconds: float = 20.0) -> None:
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)
