"""A program in a sandbox of its own, and its one way to the worker."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator

import pytest

from harnesslab.core.running.ports import Limits, Place
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap
from harnesslab.runtime.sandboxes.child import BubblewrapChild
from tests.runtime.sandboxes.conftest import Opener


@pytest.fixture
def gateway() -> Iterator[str]:
    """A unix socket on the machine that answers each connection with what it got, in capitals."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = f"{folder}/gateway.sock"
        server.bind(path)
        server.listen()
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        yield path


def _serve(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            received = b""
            while data := connection.recv(65536):
                received += data
            connection.sendall(received.upper())


def start(code: str, place: Place | None = None) -> BubblewrapChild:
    """Start Python code as a child."""
    return Bubblewrap().spawn(place or Place(), ["python3", "-c", code])


def test_lines_go_in_and_out(opened: Opener) -> None:
    child = start("import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)\nsys.exit(4)")
    for word in (b"abc", b"xyz"):
        child.stdin.write(word + b"\n")
        assert child.stdout.readline() == word[::-1] + b"\n"
    assert child.wait(0.05) is None
    child.stdin.close()
    assert child.wait(10) == 4
    assert child.stdout.read() == b""
    child.kill()


def test_complaints_are_the_last_8_kib_of_errors() -> None:
    child = start("import sys; sys.stderr.write('x' * 100_000 + 'end')")
    assert child.wait(10) == 0
    assert child.complaints() == "x" * 8189 + "end"
    child.kill()


def test_killing_ends_it_and_all_it_started() -> None:
    child = start("import os, time; os.fork(); print('up', flush=True); time.sleep(100)")
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.kill()
    assert child.wait(1) == -9


def test_a_program_that_is_not_there_says_so() -> None:
    child = Bubblewrap().spawn(Place(), ["no-such-harness"])
    assert child.wait(10) == 127
    assert "no-such-harness" in child.complaints()


def test_its_memory_is_watched() -> None:
    hold = "import os, time; [os.fork() for _ in range(2)]; x = b'x' * (60 << 20); time.sleep(60)"
    child = start(hold, Place(limits=Limits(memory=100 << 20)))
    assert child.wait(30) == -9
    assert child.complaints() == "It held more memory than 100 MiB."


def test_it_sees_no_files_of_another_sandbox(opened: Opener) -> None:
    opened().run("echo secret > /work/secret; echo secret > /tmp/secret", timeout=10)
    child = start("import os; print(os.listdir('/work'), os.listdir('/tmp'))")
    assert child.stdout.readline() == b"[] []\n"
    child.kill()


def test_a_loopback_port_leads_to_the_worker_and_nowhere_else(gateway: str) -> None:
    code = (
        "import socket\n"
        "for n in range(80):\n"
        "    s = socket.create_connection(('127.0.0.1', 8080)); s.sendall(b'hello %d' % n); s.shutdown(1)\n"
        "    print(s.makefile().read())\n"
        "try: socket.create_connection(('127.0.0.1', 8081))\n"
        "except OSError as error: print(type(error).__name__)\n"
    )
    child = start(code, Place(sockets={8080: gateway}))
    said = child.stdout.read().decode().splitlines()
    assert said == [*(f"HELLO {n}" for n in range(80)), "ConnectionRefusedError"], child.complaints()
    child.kill()


def test_much_passes_through_the_port_whole(gateway: str) -> None:
    code = (
        "import socket, hashlib\n"
        "s = socket.create_connection(('127.0.0.1', 8080)); s.sendall(b'a' * 5_000_000); s.shutdown(1)\n"
        "print(s.makefile('rb').read() == b'A' * 5_000_000)"
    )
    child = start(code, Place(sockets={8080: gateway}))
    assert child.stdout.readline() == b"True\n", child.complaints()
    child.kill()


def test_a_worker_that_is_gone_closes_the_connection() -> None:
    path = f"{tempfile.mkdtemp()}/gone.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
    code = "import socket; print(socket.create_connection(('127.0.0.1', 9000)).recv(10))"
    child = start(code, Place(sockets={9000: path}))
    assert child.stdout.readline() == b"b''\n", child.complaints()
    child.kill()


def test_commands_reach_the_port_too(opened: Opener, gateway: str) -> None:
    sandbox = opened(Place(sockets={8080: gateway}))
    code = (
        "import socket; s = socket.create_connection(('127.0.0.1', 8080));"
        "s.send(b'hi'); s.shutdown(1); print(s.recv(9))"
    )
    for _ in range(3):
        assert sandbox.run(["python3", "-c", code], timeout=10).output == b"b'HI'\n"
