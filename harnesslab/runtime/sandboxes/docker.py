"""Sandboxes of a Docker engine, through its SDK, which is an optional requirement.

The container's own process is root without any capability, and commands are another user, so that a command can be
ended with all it left by that user's `kill -9 -1`, which the container survives.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown
from harnesslab.core.running.ports import Execution, Limits, Place, SandboxRefused
from harnesslab.runtime.sandboxes.alike import OneAtATime
from harnesslab.runtime.sandboxes.attending import Attended
from harnesslab.runtime.sandboxes.commands import execution, lost
from harnesslab.runtime.sandboxes.docker_child import DockerChild
from harnesslab.runtime.sandboxes.docker_pins import environment, pins
from harnesslab.runtime.sandboxes.docker_streams import Reading, exchange, pieces
from harnesslab.runtime.sandboxes.output import BoundedOutput
from harnesslab.runtime.sandboxes.pins import NAME_OF_HOST
from harnesslab.runtime.sandboxes.tarballs import pack, unpack
from harnesslab.runtime.sandboxes.workspace import TarReader

AGENT = "1000:1000"
WORK = "/work"
_BY_DIGEST = re.compile(r"(.+@)?sha256:[0-9a-f]{64}")
_TICK_SECONDS = 0.1
_STOP_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_FILES_SECONDS = 120.0
_IDLE = ("sleep", "2147483647")
# run as the commands' user: `-O` finds that user's processes besides this shell, and -1 reaches no other's
_SWEEP = (
    'for p in /proc/[0-9]*; do [ "${p#/proc/}" != $$ ] && [ -O "$p" ] && left=1; done; '
    '[ -z "$left" ] || { echo left; kill -9 -1; }'
)


class Docker:
    """Makes sandboxes from an image that is named by its digest; `engine` is an address, without it the usual one."""

    def __init__(self, image: str, engine: str | None = None) -> None:
        self._image = image
        self._engine = engine

    def unavailable(self) -> str:
        """Say why no sandbox can be made here, or nothing."""
        try:
            api = self._api()
        except SandboxRefused as error:
            return error.sentence
        try:
            api.inspect_image(self._image)
        except Exception as error:  # noqa: BLE001  # the SDK lets errors of its libraries through
            return f"Docker doesn't have the image {self._image}: {error}"
        finally:
            api.close()
        return ""

    def open(self, place: Place) -> DockerSandbox:
        """Open a sandbox for commands; raises `SandboxRefused`."""
        api, container = self._create(place, _IDLE, environ={}, user="0:0", listens=False)
        try:
            api.start(container)
        except Exception as error:
            _remove(api, container)
            raise SandboxRefused(f"Docker can't start a sandbox: {error}") from error
        return DockerSandbox(api, container, self._image, place)

    def spawn(self, place: Place, program: Sequence[str]) -> DockerChild:
        """Start one program in a sandbox of its own; raises `SandboxRefused`."""
        environ = environment(place)
        api, container = self._create(place, program, environ=environ, user=AGENT, listens=True)
        try:
            return DockerChild(api, container)
        except Exception as error:
            _remove(api, container)
            raise SandboxRefused(f"Docker can't start a sandbox: {error}") from error

    def _create(
        self, place: Place, command: Sequence[str], *, environ: Mapping[str, str], user: str, listens: bool
    ) -> tuple[Any, str]:
        if place.sockets:
            raise SandboxRefused("Docker sandboxes have no way to the worker's sockets.", hint="use bubblewrap")
        api = self._api()
        try:
            made = api.create_container(
                self._image,
                list(command),
                hostname=NAME_OF_HOST,
                user=user,
                environment=dict(environ),
                working_dir=WORK,
                stdin_open=listens,
                network_disabled=True,
                labels={"harnesslab": "sandbox"},
                host_config=api.create_host_config(**_host(place)),
            )
        except Exception as error:
            api.close()
            raise SandboxRefused(f"Docker can't make a sandbox: {error}") from error
        return api, str(made["Id"])

    def _api(self) -> Any:
        if not _BY_DIGEST.fullmatch(self._image):
            raise SandboxRefused(f"{self._image!r} names no image by its digest.", hint="name@sha256:…")
        try:
            docker: Any = importlib.import_module("docker")
        except ImportError:
            raise SandboxRefused(
                "The Docker SDK is not installed.", hint="pip install --require-hashes -r requirements/docker.txt"
            ) from None
        try:
            client = docker.DockerClient(base_url=self._engine) if self._engine else docker.from_env()
            client.ping()
        except Exception as error:
            raise SandboxRefused(f"No Docker engine answers: {error}") from error
        return client.api


class DockerSandbox(OneAtATime):
    """One container; commands run in it one after the other."""

    def __init__(self, api: Any, container: str, image: str, place: Place) -> None:
        super().__init__(place, pins(place))
        self._api = api
        self._container = container
        self._image = image
        self._environ = environment(place)

    def conditions(self) -> Mapping[str, Condition]:
        """Return manifest conditions, `environment.*` and `hardware.cpu`."""
        return {
            "environment.image": Known(self._image, Provenance.CONFIGURED),
            "environment.pins": self._pinned,
            "environment.network": Known("none", Provenance.CONFIGURED),
            "environment.platform": Known(f"Docker, {WORK}", Provenance.CONFIGURED),
            "hardware.cpu": Unknown("the Docker engine doesn't name the processor"),
        }

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        environ: Mapping[str, str] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Execution:
        """Run a shell command, or a program with arguments, in the work folder."""
        program = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        with self._turn:
            if self._end is not None:
                return lost(self._end)
            began = time.monotonic()
            output = BoundedOutput(self._place.limits.output)
            try:
                found = self._attend(program, {**self._environ, **(environ or {})}, output, timeout, stopped)
            except Exception as error:  # noqa: BLE001  # whatever the SDK's libraries raise, the sandbox is lost
                found = Attended(why=f"The sandbox was lost: {error}")
            if found.answer is None:
                self._lose(found.why or "The sandbox was lost.")
            return execution(found, output, time.monotonic() - began, self._place.limits)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files into the work folder by relative path, with fixed times."""
        self._tar(["tar", "-C", WORK, "-xf", "-"], pack(files, self._place), lambda _: None)

    def close(self) -> None:
        """End everything inside and remove it; may be called twice."""
        self._lose("The sandbox is closed.")

    def _attend(
        self,
        program: Sequence[str],
        environ: Mapping[str, str],
        output: BoundedOutput,
        timeout: float,
        stopped: Callable[[], bool] | None,
    ) -> Attended:
        made = self._exec(program, environ)
        reading = Reading(pieces(self._api.exec_start(made, socket=True)), output.feed)
        found, now = Attended(), time.monotonic()
        deadline, asked = now + timeout, now
        while not reading.ended.wait(_TICK_SECONDS):
            now = time.monotonic()
            if now > deadline:
                found.timed_out, found.why = True, f"It was ended after {timeout:g} seconds."
            elif stopped is not None and now - asked > _STOP_SECONDS:
                asked = now
                found.why = "The command was stopped." if stopped() else None
            if found.why is not None:
                break
        left = self._sweep()
        if not reading.ended.wait(_GRACE_SECONDS):
            return Attended(why=found.why or "The sandbox didn't end a command.", timed_out=found.timed_out)
        if reading.broken and found.why is None:
            return Attended(why=f"The Docker engine's connection broke in a command's output: {reading.broken}")
        found.answer = {"status": self._api.exec_inspect(made)["ExitCode"], "left": left and found.why is None}
        return found

    def _exec(self, program: Sequence[str], environ: Mapping[str, str], *, listens: bool = False) -> str:
        made = self._api.exec_create(
            self._container, list(program), environment=dict(environ), workdir=WORK, user=AGENT, stdin=listens
        )
        return str(made["Id"])

    def _sweep(self) -> bool:
        """End what the commands' user still runs, and say whether there was anything."""
        made = self._exec(["/bin/sh", "-c", _SWEEP], {})
        return b"left" in b"".join(pieces(self._api.exec_start(made, socket=True)))

    def _read(self, reader: TarReader) -> TarReader:
        tar = bytearray()
        bound = 2 * self._place.limits.disk + 2048 * self._place.limits.files

        def feed(data: bytes) -> None:
            if len(tar) <= bound:
                tar.extend(data)

        self._tar(["tar", "-C", WORK, "-cf", "-", "."], b"", feed)
        if len(tar) > bound:
            raise SandboxRefused(f"The work folder's files hold more than {self._place.limits.disk} bytes.")
        reader.feed(unpack(bytes(tar)))
        return reader

    def _tar(self, program: Sequence[str], given: bytes, feed: Callable[[bytes], None]) -> None:
        with self._turn:
            if self._end is not None:
                raise SandboxRefused(self._end)
            made = self._exec(program, {}, listens=True)
            complaint = bytearray()
            exchange(self._api.exec_start(made, socket=True), given, feed, complaint.extend, _FILES_SECONDS)
            if self._api.exec_inspect(made)["ExitCode"] != 0:
                words = complaint[-500:].decode(errors="replace").strip()
                raise SandboxRefused(f"The work folder can't be read or written: {words}")

    def _lose(self, why: str) -> None:
        if self._end is None:
            self._end = why
            _remove(self._api, self._container)


def _host(place: Place) -> dict[str, object]:
    limits = place.limits
    temporary, shared = limits.disk // 4, limits.disk // 16
    mounted = f"rw,exec,nosuid,nodev,nr_inodes={limits.files}"
    return {
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.processes,
        "mem_limit": limits.memory + limits.disk,  # Docker counts tmpfs as memory
        "memswap_limit": limits.memory + limits.disk,
        "init": True,
        "ipc_mode": "private",
        "shm_size": shared,
        "tmpfs": {
            WORK: f"{mounted},size={limits.disk - temporary - shared},uid=1000,gid=1000,mode=755",
            "/tmp": f"{mounted},size={temporary},mode=1777",  # noqa: S108
        },
        "ulimits": _ulimits(limits),
        "binds": {host: {"bind": inside, "mode": "ro"} for inside, host in place.readable.items()},
    }


def _ulimits(limits: Limits) -> list[dict[str, object]]:
    values = {"fsize": limits.file, "cpu": limits.cpu, "core": 0}
    return [{"Name": name, "Soft": value, "Hard": value} for name, value in values.items()]


def _remove(api: Any, container: str) -> None:
    try:
        api.remove_container(container, force=True, v=True)
    except Exception:  # noqa: BLE001, S110  # it is gone, or the engine is
        pass
    finally:
        api.close()
