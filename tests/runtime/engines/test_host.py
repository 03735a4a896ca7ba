"""The engine host and its processes: what happens when any of them is killed, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import EngineDown, FailureKind, ModelRequest
from harnesslab.runtime.engines.configuration import Configuration, bundled_model
from harnesslab.runtime.engines.embedded import EmbeddedEngine, EmbeddedSettings
from harnesslab.runtime.engines.hosting import Host, hosted
from harnesslab.runtime.engines.socket_path import SOCKET

pytestmark = pytest.mark.serial
STORY: list[JSON] = [{"role": "user", "content": "Tell me a long story about a lighthouse."}]


def configuration(**changes: int) -> Configuration:
    """Return a small configuration."""
    return Configuration(str(bundled_model()), **{"context": 512, **changes})  # type: ignore[arg-type]


def engine_of(home: Path, **changes: int) -> EmbeddedEngine:
    """Return an engine with a small context."""
    return EmbeddedEngine(home, "small", EmbeddedSettings(configuration(**changes)))


def until(said: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something is so, and say whether it came to be."""
    deadline = time.monotonic() + seconds
    while not said():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def alive(pid: int) -> bool:
    """Say whether a process lives; a zombie does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def pid_of(server: object) -> int:
    """Return a child's process id."""
    assert isinstance(server, dict)
    pid = server["pid"]
    assert isinstance(pid, int)
    return pid


def host_pid(home: Path) -> object:
    """Return the process id of the host that answers, or None."""
    try:
        return Host(home).status()["pid"]
    except EngineDown:
        return None


def _listens(home: Path) -> bool:
    """Say whether a host answers: its socket is there a moment before it does."""
    try:
        Host(home).hold().close()
    except EngineDown:
        return False
    return True


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A host as a supervisor would run it."""
    command = [sys.executable, "-m", "harnesslab.runtime.engines.host", "--home", str(tmp_path), "--idle", "1"]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        assert until(lambda: _listens(tmp_path))
        yield process
    finally:
        process.terminate()
        process.wait(10)


def test_one_process_a_configuration(tmp_path: Path) -> None:
    with hosted(tmp_path) as host:
        first, again = host.ensure(configuration()), host.ensure(configuration())
        other = host.ensure(configuration(n_batch=64))
        assert first == again
        assert first["pid"] != other["pid"]
        assert first["weights"] == other["weights"]
        assert host.stop(configuration(n_batch=64)) is True
        assert host.stop(configuration(n_batch=64)) is False
        restarted = host.restart(configuration())
        assert restarted["pid"] != first["pid"]
        children = host.status()["children"]
        assert isinstance(children, list)
        assert [child["pid"] for child in children] == [restarted["pid"]]
    assert until(lambda: not alive(pid_of(restarted)))
    assert not (tmp_path / SOCKET).exists()


def test_a_crash_in_the_middle_of_an_answer_is_told_and_the_next_request_works(tmp_path: Path) -> None:
    with hosted(tmp_path) as host:
        engine = engine_of(tmp_path)
        pid = pid_of(host.ensure(configuration()))

        def crash(text: str) -> bool:
            if text:
                os.kill(pid, signal.SIGSEGV)
            return True

        got = engine.ask(ModelRequest(STORY, {"max_tokens": 300}, stream=True), timeout=30, on_text=crash)
        assert got.failure is not None
        assert got.failure.kind is FailureKind.UNREACHABLE
        assert got.failure.facts["signal"] == "SIGSEGV"
        assert f"llama.cpp (process {pid}) ended with signal SIGSEGV" in got.failure.sentence
        assert got.raw_response
        after = engine.ask(ModelRequest(STORY, {"max_tokens": 4}), timeout=30)
        assert after.answer is not None, after.failure
        assert host.ensure(configuration())["pid"] != pid


def test_a_failed_assertion_of_llama_cpp_ends_its_process_alone(tmp_path: Path) -> None:
    with hosted(tmp_path):
        got = engine_of(tmp_path, n_batch=1).ask(ModelRequest(STORY, {"max_tokens": 4}), timeout=30)
        assert got.failure is not None
        assert got.failure.kind is FailureKind.UNREACHABLE
        assert "signal SIGABRT" in got.failure.sentence
        assert "get_sub_batch" in got.failure.sentence
        assert engine_of(tmp_path).ask(ModelRequest(STORY, {"max_tokens": 4}), timeout=30).answer is not None


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    file = tmp_path / "not.gguf"
    file.write_bytes(b"GGUF nothing more")
    with hosted(tmp_path) as host, pytest.raises(EngineDown, match=r"llama\.cpp \(process \d+\) ended"):
        host.ensure(Configuration(str(file)))


def test_children_die_with_a_host_that_was_killed(lasting: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid = pid_of(Host(tmp_path).ensure(configuration()))
    lasting.kill()
    lasting.wait()
    assert until(lambda: not alive(pid))
    with pytest.raises(EngineDown, match="no engine host answers"):
        Host(tmp_path).status()
    with hosted(tmp_path) as host:  # over the socket that the killed one left
        assert pid_of(host.ensure(configuration())) != pid


def test_a_host_that_is_told_to_stop_leaves_nothing(lasting: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid = pid_of(Host(tmp_path).ensure(configuration()))
    lasting.terminate()
    assert lasting.wait(10) == 0
    assert not alive(pid)
    assert not (tmp_path / SOCKET).exists()


def test_an_unused_child_is_ended(lasting: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid = pid_of(Host(tmp_path).ensure(configuration()))
    assert until(lambda: not alive(pid))
    assert lasting.poll() is None
    assert pid_of(Host(tmp_path).ensure(configuration())) != pid


def test_a_child_that_works_is_not_idle(lasting: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """It answers for longer than the host waits for an unused one."""
    pid = pid_of(Host(tmp_path).ensure(configuration(context=8192)))
    enough = time.monotonic() + 3
    request = ModelRequest(STORY, {"max_tokens": 8000, "ignore_eos": True}, stream=True)
    engine = engine_of(tmp_path, context=8192)
    got = engine.ask(request, timeout=60, on_text=lambda _text: time.monotonic() < enough)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.STOPPED
    assert pid_of(Host(tmp_path).ensure(configuration(context=8192))) == pid


def test_many_starters_share_one_host(tmp_path: Path) -> None:
    def start(_number: int) -> tuple[object, int]:
        with hosted(tmp_path) as host:
            return host.status()["pid"], pid_of(host.ensure(configuration()))

    with hosted(tmp_path) as host, ThreadPoolExecutor(4) as pool:
        assert set(pool.map(start, range(4))) == {(host.status()["pid"], pid_of(host.ensure(configuration())))}


def test_a_host_ends_when_the_command_that_held_it_was_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from harnesslab.runtime.engines.hosting import hosted\n"
        f"with hosted(Path({str(tmp_path)!r})) as host: print(host.status()['pid'], flush=True); time.sleep(60)"
    )
    command = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert command.stdout is not None
    host_pid = int(command.stdout.readline())
    assert alive(host_pid)
    command.kill()
    command.wait()
    command.stdout.close()
    assert until(lambda: not alive(host_pid))


def test_a_lasting_host_waits_for_one_that_is_held(tmp_path: Path) -> None:
    with hosted(tmp_path) as host:
        held = host.status()["pid"]
        lasting = subprocess.Popen([sys.executable, "-m", "harnesslab.runtime.engines.host", "--home", str(tmp_path)])
        try:
            time.sleep(0.5)
            assert lasting.poll() is None
            assert host.status()["pid"] == held
        except BaseException:
            lasting.kill()
            raise
    try:
        assert until(lambda: host_pid(tmp_path) == lasting.pid)
    finally:
        lasting.terminate()
        lasting.wait(10)


def test_a_home_with_a_long_path(tmp_path: Path) -> None:
    home = tmp_path / ("a" * 100) / ("b" * 100)
    home.mkdir(parents=True)
    with hosted(home) as host:
        assert host.status()["children"] == []


def test_nonsense_is_answered(tmp_path: Path) -> None:
    with hosted(tmp_path) as host, host.hold():
        questions: list[dict[str, JSON]] = [{"do": "dance"}, {"do": "stop"}]
        questions.append({"do": "ensure", "configuration": {"threads": "many"}})
        for question in questions:
            with pytest.raises(EngineDown):
                host._ask(question)


def test_no_host_is_a_failure_and_no_exception(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    got = engine.ask(ModelRequest(STORY), timeout=5)
    assert got.failure is not None
    assert got.failure.kind is FailureKind.UNREACHABLE
    assert "no engine host answers" in got.failure.sentence
    assert not engine.health().up
    with pytest.raises(EngineDown):
        engine.conditions()
