"""The program that stays inside a sandbox: it starts commands, ends what they leave, and reads and writes the folder.

One request at a time comes over an inherited socket. A command gets its streams from the worker directly, so that its
output never passes through here. Nothing that this program answers is believed beyond what a command could do.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from typing import Any

from harnesslab.runtime.sandboxes.inside import forwarder, frames, guard, tree

REQUEST_BYTES = 64 * 1024 * 1024
TICK_MS = 50
OPEN_FILES = 1024
CLOCK_FILES = ("faketime_shm_", "sem.faketime_sem_")
LINGER_SECONDS = 0.1
"""How long a process may outlive the command that started it without being called left running."""
ENDING_SECONDS = 5.0
WRITABLE = ("/work", "/tmp", "/dev/shm")  # noqa: S108  # private to the sandbox


class SandboxServer:
    """One sandbox, seen from inside; `setup` is what the worker decided."""

    def __init__(self, channel: socket.socket, setup: dict[str, Any]) -> None:
        self.channel = channel
        self.user: int | None = setup["user"]
        self.shown: int | None = setup["shown_user"]
        self.limits: dict[str, int] = setup["limits"]
        self.moment: int | None = setup["moment"]
        self.fixed_addresses: bool = setup["fixed_addresses"]
        self.filter = guard.Filter(os.getpid())
        self.own_tasks = 2 + (2 * forwarder.CONNECTIONS if setup["sockets"] else 0)
        """Init, this process and its threads, which count where the commands are the same user."""
        if self.user is not None:
            guard.shed()
            os.chown("/work", self.user, self.user)
        turns = threading.Semaphore(forwarder.CONNECTIONS)
        for port, path in setup["sockets"].items():
            forwarder.forward(int(port), path, turns)

    def serve(self) -> None:
        """Answer requests until the worker is gone."""
        frames.send(self.channel, {"ready": True})
        while got := frames.receive(self.channel, REQUEST_BYTES):
            request, fds = got
            if request["op"] == "run":
                answer = self.run(request, fds)
            elif request["op"] == "kill":  # the command ended before the request came
                continue
            else:
                answer = self.work(request, fds)
            frames.send(self.channel, {**answer, "id": request["id"]})

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, object]:
        """Run one command to its end, and end what it left."""
        process = self.fork(lambda: self.become(request, fds))
        frames.close(fds)
        limit = self.watch(process)
        ended = os.waitpid(process, 0)[1]
        left = limit is None and self.lingers()
        self.end_all()
        self.tidy()
        return {"status": os.waitstatus_to_exitcode(ended), "left": left, "limit": limit}

    def work(self, request: dict[str, Any], fds: list[int]) -> dict[str, object]:
        """Read or write the work folder as the commands' user."""

        def act() -> None:
            if request["op"] == "read":
                with open(fds[0], "wb", buffering=1 << 16) as out:
                    tree.read("/work", out)
            else:
                with open(fds[0], "rb") as source:
                    tree.write("/work", source, self.moment)

        refused = self.in_child(act, spare=fds)
        self.tidy()
        return {"refused": refused}

    def become(self, request: dict[str, Any], fds: list[int]) -> None:
        """Turn a forked process into the command."""
        os.setsid()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        self.lower()
        if self.user is not None and self.shown is not None:
            guard.appear_as(self.shown, self.user)
        if self.fixed_addresses:
            guard.fix_addresses()
        os.chdir("/work")
        self.filter.apply()  # last: it refuses the user namespace that `appear_as` makes
        program, environ = request["argv"], request["environ"]
        try:
            os.execvpe(program[0], program, environ)  # noqa: S606  # running commands is what this is for
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            os.write(2, os.fsencode(f"{program[0][:200]!r}: {why}\n"))
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)

    def lower(self) -> None:
        """Take limits and the commands' user."""
        cpu, file, memory = self.limits["cpu"], self.limits["file"], self.limits["memory"]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        files = min(OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        processes = self.limits["processes"] + (self.own_tasks if self.user is None else 0)
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        if self.user is not None:
            os.setgroups([])  # before the user, who may not change groups any more
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)

    def fork(self, act: Callable[[], None]) -> int:
        """Start a process that does one thing and ends."""
        process = os.fork()
        if process:
            return process
        try:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a command would inherit that
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            act()
        except BaseException as error:  # noqa: BLE001  # nothing may return into the server's loop
            os.write(2, os.fsencode(f"{type(error).__name__}: {error}\n"))
            os._exit(126)
        os._exit(0)

    def in_child(self, act: Callable[[], None], spare: list[int] | None = None) -> str | None:
        """Do something with files as the commands' user, and return why it was refused."""
        reading, writing = os.pipe()

        def guarded() -> None:
            if self.user is not None:
                os.setgroups([])
                os.setresgid(self.user, self.user, self.user)
                os.setresuid(self.user, self.user, self.user)
            try:
                act()
            except tree.TreeRefused as error:
                os.write(writing, os.fsencode(str(error))[:4000])
            except OSError as error:
                os.write(writing, os.fsencode(f"The work folder can't be read or written: {error.strerror}."))

        process = self.fork(guarded)
        frames.close([writing, *(spare or [])])
        with open(reading, "rb") as source:
            refused = os.fsdecode(source.read())
        os.waitpid(process, 0)
        return refused or None

    def tidy(self) -> None:
        """Remove what the library of the pinned clock leaves of each process, and give all files the pinned time."""
        moment = self.moment

        def act() -> None:
            for name in os.listdir(WRITABLE[-1]):
                if name.startswith(CLOCK_FILES):
                    os.unlink(f"{WRITABLE[-1]}/{name}")
            for root in WRITABLE if moment is not None else ():
                tree.fix_times(root, moment or 0)

        self.in_child(act)
        for root in WRITABLE[1:] if moment is not None else ():  # these belong to this process
            os.utime(root, ns=(moment or 0, moment or 0))

    def watch(self, process: int) -> str | None:
        """Wait for a command's end, ending it where the worker says so or it makes too many files."""
        handle = os.pidfd_open(process)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self.channel, select.POLLIN)
        # files that the worker wrote count too: a folder that is beyond the limit already must not end every command
        limit, most = None, max(self.limits["files"], files_made())
        try:
            while True:
                ready = {fd for fd, _ in poll.poll(TICK_MS)}
                if handle in ready:
                    return limit
                if self.channel.fileno() in ready and frames.receive(self.channel, REQUEST_BYTES) is None:
                    os._exit(0)  # init ends with its only child, and with it everything
                if limit is None:
                    limit = "" if ready else "files" if files_made() > most else None
                if limit is not None:
                    # all but init and this process; at every tick, since a fork may win against one signal
                    os.kill(-1, signal.SIGKILL)
        finally:
            os.close(handle)

    def lingers(self) -> bool:
        """Say whether processes outlive the command by more than a moment."""
        until = time.monotonic() + LINGER_SECONDS
        while others():
            if time.monotonic() > until:
                return True
            time.sleep(0.002)
        return False

    def end_all(self) -> None:
        """End every process but init and this one."""
        until = time.monotonic() + ENDING_SECONDS
        while others():
            os.kill(-1, signal.SIGKILL)
            if time.monotonic() > until:
                raise SystemExit("Processes of a command couldn't be ended.")
            time.sleep(0.001)


def files_made() -> int:
    """Return how many files there are; an empty one takes memory and no disk."""
    found = [os.statvfs(root) for root in WRITABLE]
    return sum(one.f_files - one.f_ffree for one in found)


def others() -> list[int]:
    """Return the living processes besides init and this one."""
    own = os.getpid()
    return [
        pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) not in (1, own) and _lives(pid)
    ]


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as source:
            return source.read().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def main() -> None:
    """Serve over the inherited socket, which no argument names: arguments are seen by commands."""
    guard.hide()
    os.umask(0o022)
    channel = socket.socket(fileno=next(fd for fd in map(int, os.listdir("/proc/self/fd")) if _is_socket(fd)))
    channel.set_inheritable(False)
    if got := frames.receive(channel, REQUEST_BYTES):
        SandboxServer(channel, got[0]).serve()


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:  # the listing's own
        return False
