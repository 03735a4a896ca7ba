"""What an untrusted command tries to reach, and doesn't."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from harnesslab.core.running.ports import Place, SandboxRefused
from harnesslab.runtime.sandboxes.bubblewrap import BubblewrapSandbox
from harnesslab.runtime.sandboxes.users import FIRST, LAST
from tests.runtime.sandboxes.conftest import Opener

SERVER = 2
"""The server's process inside."""


def python(sandbox: BubblewrapSandbox, code: str) -> str:
    """Run Python inside and return what it printed."""
    return sandbox.run(["python3", "-c", code], timeout=20).output.decode(errors="replace")


def still_works(sandbox: BubblewrapSandbox) -> bool:
    """Say whether the next command runs as if nothing had been."""
    return sandbox.run("echo works", timeout=20).output == b"works\n"


def test_a_server_on_the_loopback_of_the_machine_is_not_reached(sandbox: BubblewrapSandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = python(sandbox, f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)")
        assert "ConnectionRefusedError" in said
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


def test_an_abstract_socket_of_the_machine_is_not_reached(sandbox: BubblewrapSandbox) -> None:
    name = f"harnesslab-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        said = python(sandbox, f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')")
    assert "ConnectionRefusedError" in said


def test_there_is_no_way_out_but_loopback(sandbox: BubblewrapSandbox) -> None:
    said = python(sandbox, "import socket; print([name for _, name in socket.if_nameindex()])")
    assert said.strip() == "['lo']"
    assert "Network is unreachable" in python(sandbox, "import socket; socket.create_connection(('192.0.2.1', 80), 3)")


def test_nothing_of_the_environment_of_the_worker_is_seen(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_SECRET_KEY", "leaked-secret")
    sandbox = opened()
    said = sandbox.run("env; cat /proc/*/environ | tr '\\0' '\\n'", timeout=10).output
    assert b"PATH=" in said
    assert b"leaked-secret" not in said
    assert b"HARNESSLAB" not in said


def test_command_lines_inside_name_nothing_of_the_machine(sandbox: BubblewrapSandbox) -> None:
    said = sandbox.run("cat /proc/1/cmdline /proc/2/cmdline | tr '\\0' ' '", timeout=10).output.decode()
    assert said.startswith("bwrap --args 200 -- ")
    assert str(Path(__file__).parents[3]) not in said


def test_files_of_the_machine_are_not_seen(sandbox: BubblewrapSandbox) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        Path(secret.name).chmod(0o644)
        paths = ["/root", "/home", "/etc/shadow", "/var", "/sys", "/boot", secret.name, *_own_files()]
        for path in paths:
            assert sandbox.run(["ls", path], timeout=10).exit_code == 2, path
    assert sandbox.run("ls -A /work /tmp", timeout=10).output == b"/tmp:\n\n/work:\n"


def test_the_system_is_read_only(sandbox: BubblewrapSandbox) -> None:
    for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/run/x", "/run/harnesslab/x", "/proc/sys/kernel/hostname"):
        assert sandbox.run(f"echo x > {path}", timeout=10).exit_code == 1, path
    for path in ("/usr/bin/env", "/etc/passwd", "/run/harnesslab/harnesslab/runtime/sandboxes/inside/server.py"):
        assert sandbox.run(f"echo x >> {path}", timeout=10).exit_code == 1, path
        assert sandbox.run(f"chmod 777 {path}", timeout=10).exit_code == 1, path


def test_a_command_has_no_capability_and_gets_none(sandbox: BubblewrapSandbox) -> None:
    said = sandbox.run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status", timeout=10).output.decode()
    found = dict(line.replace(":", "").split() for line in said.splitlines())
    assert {int(found[name], 16) for name in found if name.startswith("Cap")} == {0}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")


def test_no_namespace_can_be_made(sandbox: BubblewrapSandbox) -> None:
    for option in ("-U", "-Ur", "-m", "-n", "-p"):
        assert sandbox.run(["unshare", option, "true"], timeout=10).exit_code == 1
    newer = "import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(435, 0, 0), ctypes.get_errno())"
    assert python(sandbox, newer).strip() == "-1 38"


@pytest.mark.parametrize("attempt", ["kill -9 2", "kill -STOP 2", "kill -9 -1", "kill -9 1", "kill -9 -2", "kill -9 0"])
def test_the_server_inside_can_not_be_ended_or_stopped(sandbox: BubblewrapSandbox, attempt: str) -> None:
    sandbox.run(attempt, timeout=5)
    assert still_works(sandbox)


def test_the_server_inside_can_not_be_traced_or_read(sandbox: BubblewrapSandbox) -> None:
    trace = (
        "import ctypes; library = ctypes.CDLL(None, use_errno=True);"
        f"print([library.ptrace(16, pid, 0, 0) for pid in ({SERVER},)], ctypes.get_errno())"
    )
    assert python(sandbox, trace).strip() == "[-1] 1"
    for name in ("mem", "environ", "fd/0", "maps"):
        assert sandbox.run(f"head -c 1 /proc/{SERVER}/{name}", timeout=10).exit_code == 1, name
    assert sandbox.run(["ls", f"/proc/{SERVER}/fd"], timeout=10).exit_code == 2
    assert still_works(sandbox)


def test_the_server_inside_can_not_be_starved_by_limits_or_signals(sandbox: BubblewrapSandbox) -> None:
    python(sandbox, f"import resource; resource.prlimit({SERVER}, resource.RLIMIT_NOFILE, (0, 0))")
    python(
        sandbox,
        "import fcntl, os, signal\nfor pid in (2, -2):\n    r, w = os.pipe()\n"
        "    for option in (8, 15):\n"
        "        try: fcntl.fcntl(r, option, pid)\n"
        "        except OSError: pass\n"
        "    fcntl.fcntl(r, 10, signal.SIGKILL); fcntl.fcntl(r, 4, 0o20000); os.write(w, b'x')",
    )
    assert still_works(sandbox)


def test_no_command_inherits_an_open_file(sandbox: BubblewrapSandbox) -> None:
    code = "import os; print({n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n != '3'})"
    plain = ["env", "-i", "python3", "-S", "-c", code.replace("if n != '3'", "if os.path.exists(f'/proc/self/fd/{n}')")]
    said = sandbox.run(plain, timeout=10).output.decode()
    assert sorted(eval(said)) == ["0", "1", "2"]


def test_what_is_shown_is_read_only_and_found_where_it_was_asked_for(opened: Opener, tmp_path: Path) -> None:
    shown = Path(tempfile.mkdtemp())
    shown.chmod(0o755)
    (shown / "code.py").write_text("print('shown')\n")
    sandbox = opened(Place(readable={"/opt/harness/deep": str(shown)}))
    assert sandbox.run("python3 /opt/harness/deep/code.py", timeout=10).output == b"shown\n"
    assert sandbox.run("echo x > /opt/harness/deep/new", timeout=10).exit_code == 1
    assert not (shown / "new").exists()


@pytest.mark.parametrize("inside", ["/", "relative", "/etc/passwd", "/work/x", "/proc/1", "/opt/../etc/x", "/run/x"])
def test_nothing_is_shown_over_the_sandbox_itself(opened: Opener, inside: str) -> None:
    with pytest.raises(SandboxRefused, match="Nothing of the machine can be shown"):
        opened(Place(readable={inside: "/usr"}))


def test_what_is_not_there_is_refused_in_a_sentence(opened: Opener) -> None:
    with pytest.raises(SandboxRefused, match=r"There is no /no/such/place"):
        opened(Place(readable={"/opt/x": "/no/such/place"}))
    with pytest.raises(SandboxRefused, match=r"There is no socket /no/such for port 8000"):
        opened(Place(sockets={8000: "/no/such"}))
    with pytest.raises(SandboxRefused, match=r"No sandbox can listen on port 80"):
        opened(Place(sockets={80: "/no/such"}))


def test_each_sandbox_of_root_has_a_user_of_its_own(opened: Opener) -> None:
    place = Place(pins=frozenset())
    first, second = (int(opened(place).run("id -u", timeout=10).output) for _ in range(2))
    if os.geteuid() == 0:
        assert first != second
        assert {first, second} <= set(range(FIRST, LAST + 1))
    else:
        assert (first, second) == (1000, 1000)


def _own_files() -> list[str]:
    return [str(Path(__file__)), os.environ.get("HARNESSLAB_HOME", "/var/lib/harnesslab"), str(Path.home())]
