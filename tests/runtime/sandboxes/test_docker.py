"""What is asked of a Docker engine, and what is made of its answers. No engine runs here: see `engine`."""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesslab.core.conditions.manifest import Known, Manifest
from harnesslab.core.running.ports import Limits, Place, SandboxRefused
from harnesslab.runtime.sandboxes.available import sandboxes
from harnesslab.runtime.sandboxes.docker import Docker, DockerSandbox
from tests.runtime.sandboxes.conftest import Opener
from tests.runtime.sandboxes.engine import IMAGE, Engine

pytestmark = pytest.mark.xdist_group("containers")
"""One process runs them: a timeout ends all that the containers' user runs, and that user is one."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine whose containers are a folder."""
    found = Engine(str(tmp_path))
    yield found
    found.close()


@pytest.fixture
def sandbox(engine: Engine) -> Iterator[DockerSandbox]:
    """A sandbox of that engine."""
    found = Docker(IMAGE, engine.address).open(Place(limits=Limits(output=100)))
    yield found
    found.close()


def test_a_container_reaches_nothing_and_may_nothing(engine: Engine, sandbox: DockerSandbox) -> None:
    asked = engine.body("POST", "/containers/create")
    assert asked["Image"] == IMAGE
    assert asked["NetworkDisabled"] is True
    assert (asked["User"], asked["Hostname"], asked["WorkingDir"]) == ("0:0", "sandbox", "/work")
    host = asked["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["PidsLimit"] == 128
    assert host["Memory"] == host["MemorySwap"] == (512 + 256) * 2**20
    assert host["Init"] is True
    assert {path: "size=" in options for path, options in host["Tmpfs"].items()} == {"/work": True, "/tmp": True}
    assert {limit["Name"] for limit in host["Ulimits"]} == {"fsize", "cpu", "core"}
    assert not host.get("Privileged")


def test_commands_are_another_user_with_an_environment_of_their_own(engine: Engine, sandbox: DockerSandbox) -> None:
    found = sandbox.run("echo out; echo $GIVEN; exit 3", timeout=10, environ={"GIVEN": "given"})
    assert (found.output, found.exit_code, found.error) == (b"out\ngiven\n", 3, None)
    asked = engine.execs[0]
    assert (asked["User"], asked["WorkingDir"], asked["Privileged"]) == ("1000:1000", "/work", False)
    assert {"PYTHONHASHSEED=0", "TZ=UTC", "GIT_AUTHOR_DATE=1767225600 +0000"} <= set(asked["Env"])
    assert not any("LD_PRELOAD" in one for one in asked["Env"])


def test_long_output_is_cut(sandbox: DockerSandbox) -> None:
    found = sandbox.run("head -c 100000 /dev/zero | tr '\\0' x", timeout=10)
    assert found.size == 100_000
    assert b"[... 99900 bytes left out ...]" in found.output


def test_a_timeout_ends_all_that_the_user_runs(sandbox: DockerSandbox) -> None:
    began = time.monotonic()
    found = sandbox.run("echo begun; exec sleep 100", timeout=0.5)
    assert (found.timed_out, found.output, found.exit_code) == (True, b"begun\n", None)
    assert time.monotonic() - began < 20
    assert sandbox.run("echo works", timeout=10).output == b"works\n"


def test_stopping_is_obeyed(sandbox: DockerSandbox) -> None:
    assert sandbox.run("exec sleep 100", timeout=60, stopped=lambda: True).error == "The command was stopped."


def test_what_was_left_is_reported(engine: Engine, sandbox: DockerSandbox) -> None:
    engine.left = b"left\n"
    assert sandbox.run("true", timeout=10).left_running


def test_files_go_in_and_come_out_with_the_digest_of_any_sandbox(sandbox: DockerSandbox, opened: Opener) -> None:
    files = {"a": b"one", "d/e/f": b"\0two", "d/g": b"", "d.txt": b"after"}
    links = "ln -s /etc/passwd link; mkdir -p d/empty; ln a hard; chmod 700 d d/e"
    sandbox.write(files)
    sandbox.run(f"chmod 755 d d/e; {links}", timeout=10)
    assert sandbox.files() == {**files, "hard": b"one"}
    other = opened()
    other.write(files)
    other.run(links, timeout=10)
    assert sandbox.state() == other.state()


def test_paths_that_lead_elsewhere_are_refused(sandbox: DockerSandbox) -> None:
    with pytest.raises(SandboxRefused, match="no relative path"):
        sandbox.write({"../x": b""})


def test_too_much_is_refused(engine: Engine) -> None:
    sandbox = Docker(IMAGE, engine.address).open(Place(limits=Limits(disk=1000, file=600)))
    sandbox.run("for i in 1 2 3; do head -c 500 /dev/zero > f$i; done", timeout=10)
    with pytest.raises(SandboxRefused, match="hold more than 1000 bytes"):
        sandbox.files()
    sandbox.close()


def test_an_engine_that_goes_away_is_one_sentence(engine: Engine, sandbox: DockerSandbox) -> None:
    engine.close()
    found = sandbox.run("true", timeout=5)
    assert found.error is not None
    assert found.error.startswith("The sandbox was lost: ")
    with pytest.raises(SandboxRefused, match="The sandbox was lost"):
        sandbox.files()


def test_closing_removes_the_container(engine: Engine, sandbox: DockerSandbox) -> None:
    sandbox.close()
    sandbox.close()
    assert [path for method, path, _ in engine.requests if method == "DELETE"] == ["/containers/box"]
    assert sandbox.run("true", timeout=1).error == "The sandbox is closed."


def test_pins_that_are_not_held_say_so(sandbox: DockerSandbox) -> None:
    held = {pin.name for pin in sandbox.pins if not pin.missing}
    assert held == {"git-dates", "hash-seeds", "host-name", "locale", "time-zone", "user"}
    manifest = Manifest.from_conditions(sandbox.conditions(), unknown="not asked")
    assert manifest["environment.image"] == Known(IMAGE, sandbox.conditions()["environment.image"].provenance)  # type: ignore[union-attr]


def test_a_child_talks_over_its_streams(engine: Engine) -> None:
    code = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)\nprint('bye', file=sys.stderr)"
    child = Docker(IMAGE, engine.address).spawn(Place(), [sys.executable, "-c", code])
    child.stdin.write(b"abc\n")
    assert child.stdout.readline() == b"cba\n"
    assert child.wait(0.05) is None
    child.stdin.close()
    assert child.stdout.read() == b""
    assert child.wait(10) == 0
    assert child.complaints() == "bye\n"
    child.kill()
    asked = engine.body("POST", "/containers/create")
    assert (asked["User"], asked["OpenStdin"], asked["HostConfig"]["NetworkMode"]) == ("1000:1000", True, "none")


def test_why_it_can_not_be_used(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Docker(IMAGE, engine.address).unavailable() == ""
    assert "names no image by its digest" in Docker("python:3.12", engine.address).unavailable()
    assert "doesn't have the image" in Docker(IMAGE.replace("a" * 64, "b" * 64), engine.address).unavailable()
    assert "No Docker engine answers" in Docker(IMAGE, "tcp://127.0.0.1:1").unavailable()
    monkeypatch.setitem(sys.modules, "docker", None)
    assert "The Docker SDK is not installed" in Docker(IMAGE, engine.address).unavailable()


def test_sockets_are_refused_for_now(engine: Engine) -> None:
    with pytest.raises(SandboxRefused, match="no way to the worker's sockets"):
        Docker(IMAGE, engine.address).open(Place(sockets={8080: "/tmp/x"}))


def test_the_sandboxes_of_this_machine_by_name() -> None:
    assert list(sandboxes()) == ["bubblewrap", "docker"]
    assert [name for name, found in sandboxes().items() if not found.unavailable()] == ["bubblewrap"]


def test_a_connection_that_breaks_in_a_commands_output_is_an_error_and_no_end(
    engine: Engine, sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sandbox._api.exec_start

    class Cut(socket.socket):
        left = struct.pack(">BxxxI", 1, 5) + b"begun" + struct.pack(">BxxxI", 1, 5)

        def recv(self, size: int, flags: int = 0, /) -> bytes:
            piece, Cut.left = Cut.left[:size], Cut.left[size:]
            if not piece:
                raise ConnectionResetError("reset by the engine")
            return piece

    def broken(made: str, **options: Any) -> Any:
        sweeps = "kill -9 -1" in engine.execs[int(made)]["Cmd"][-1]
        return whole(made, **options) if sweeps else Cut()

    monkeypatch.setattr(sandbox._api, "exec_start", broken)
    found = sandbox.run("echo all of it", timeout=10)
    assert found.exit_code is None
    assert "reset by the engine" in (found.error or "")
    assert found.output == b"begun"
