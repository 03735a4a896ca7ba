"""The sources of nondeterminism that a sandbox holds fixed: which there are, and whether this machine can hold them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from harnesslab.core.running.ports import Pin, Place, SandboxRefused
from harnesslab.runtime.sandboxes.inside import guard
from harnesslab.runtime.sandboxes.users import FIRST

ADDRESSES = "addresses"
CLOCK = "clock"
DIRECTORY_ORDER = "directory-order"
FILE_TIMES = "file-times"
GIT_DATES = "git-dates"
HASH_SEEDS = "hash-seeds"
HOST_NAME = "host-name"
LOAD = "load"
LOCALE = "locale"
PROCESS_IDS = "process-ids"
RANDOM = "random"
TIME_ZONE = "time-zone"
UPTIME = "uptime"
URANDOM = "urandom"
USER = "user"
NAMES = (
    ADDRESSES,
    CLOCK,
    DIRECTORY_ORDER,
    FILE_TIMES,
    GIT_DATES,
    HASH_SEEDS,
    HOST_NAME,
    LOAD,
    LOCALE,
    PROCESS_IDS,
    RANDOM,
    TIME_ZONE,
    UPTIME,
    URANDOM,
    USER,
)
SHOWN_USER = 1000
NAME_OF_HOST = "sandbox"
_FAKETIME = "libfaketimeMT.so.1"
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/faketime", "/usr/lib64/faketime")
_RANDOM_BYTES = 256 * 1024
_UPTIME = b"3600.00 3600.00\n"
_LOAD = b"0.00 0.00 0.00 1/10 10\n"


@dataclass(frozen=True, slots=True)
class HeldPins:
    """What holding a place's pins takes."""

    pins: tuple[Pin, ...]
    environ: Mapping[str, str]
    """For commands."""
    fixed_addresses: bool
    host_name: str | None
    files: Mapping[str, bytes]
    """Contents shown at absolute paths."""
    shown_user: int | None
    """User id that commands see as their own, where it isn't the machine's."""
    moment: int | None
    """Nanoseconds since 1970 of all files' times."""


def hold(place: Place, *, own_user: bool) -> HeldPins:
    """Decide the pins of a place; `own_user` where each sandbox has a user id of its own."""
    wanted = frozenset(NAMES) if place.pins is None else place.pins
    if unknown := sorted(wanted - set(NAMES)):
        raise SandboxRefused(f"There is no pin {unknown[0]!r}.", hint=f"pins: {', '.join(NAMES)}")
    moment = _moment(place.clock)
    pins = tuple(_pin(name, place, own_user) for name in NAMES if name in wanted)
    held = frozenset(pin.name for pin in pins if not pin.missing)
    return HeldPins(
        pins=pins,
        environ=_environ(place, held, moment),
        fixed_addresses=ADDRESSES in held,
        host_name=NAME_OF_HOST if HOST_NAME in held else None,
        files=_files(place.seed, held),
        shown_user=SHOWN_USER if USER in held or not own_user else None,
        moment=moment * 1_000_000_000 if FILE_TIMES in held else None,
    )


def _pin(name: str, place: Place, own_user: bool) -> Pin:
    missing = ""
    if name == ADDRESSES:
        missing = _addresses_missing()
    elif name in (CLOCK, RANDOM) and not _faketime():
        missing = f"{_FAKETIME} is not installed (on Debian: apt-get install libfaketime)"
    elif name == USER and own_user:
        missing = _user_missing()
    return Pin(name, "" if missing else _value(name, place), missing)


def _value(name: str, place: Place) -> str:
    return {
        ADDRESSES: "not randomised",
        CLOCK: f"{place.clock} UTC at each command's start, one millisecond later at each look",
        DIRECTORY_ORDER: "order of creation, backwards (tmpfs)",
        FILE_TIMES: f"{place.clock} UTC, set after each command",
        GIT_DATES: f"{place.clock} UTC",
        HASH_SEEDS: "0 (Python, Perl)",
        HOST_NAME: NAME_OF_HOST,
        LOAD: _LOAD.decode().strip(),
        LOCALE: "C.UTF-8",
        PROCESS_IDS: "counted from 1 in each sandbox",
        RANDOM: "getrandom from the place's seed, the same for each process",
        TIME_ZONE: "UTC",
        UPTIME: _UPTIME.decode().strip(),
        URANDOM: f"{_RANDOM_BYTES} bytes from the place's seed, anew at each opening",
        USER: str(SHOWN_USER),
    }[name]


def _moment(clock: str) -> int:
    try:
        return int(datetime.strptime(clock, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise SandboxRefused(f"{clock!r} is no time such as 2026-01-01 00:00:00.") from None


def _environ(place: Place, held: frozenset[str], moment: int) -> dict[str, str]:
    found: dict[str, str] = {}
    if held & {CLOCK, RANDOM}:
        found["LD_PRELOAD"] = _faketime()
    if CLOCK in held:
        found["FAKETIME"] = f"@{place.clock} i0.001"
    if RANDOM in held:
        found["FAKERANDOM_SEED"] = f"0x{_stream(place.seed, b'getrandom', 8).hex().upper()}"
    if HASH_SEEDS in held:
        found |= {"PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    if GIT_DATES in held:
        found |= {"GIT_AUTHOR_DATE": f"{moment} +0000", "GIT_COMMITTER_DATE": f"{moment} +0000"}
    if TIME_ZONE in held:
        found["TZ"] = "UTC"
    if LOCALE in held:
        found |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    return found


def _files(seed: int, held: frozenset[str]) -> dict[str, bytes]:
    found = {}
    if UPTIME in held:
        found["/proc/uptime"] = _UPTIME
    if LOAD in held:
        found["/proc/loadavg"] = _LOAD
    if URANDOM in held:
        found |= dict.fromkeys(("/dev/urandom", "/dev/random"), _stream(seed, b"urandom", _RANDOM_BYTES))
    return found


@lru_cache(maxsize=8)
def _stream(seed: int, purpose: bytes, size: int) -> bytes:
    return hashlib.shake_256(b"harnesslab.sandbox/1 %s %d" % (purpose, seed)).digest(size)


@lru_cache(maxsize=1)
def _faketime() -> str:
    """Return the path of the library that pins clock and random numbers, or nothing."""
    for folder in _LIBRARIES:
        for pattern in (_FAKETIME, f"*/{_FAKETIME}", f"*/faketime/{_FAKETIME}"):
            if found := next(iter(sorted(Path(folder).glob(pattern))), None):
                return str(found)
    return ""


@lru_cache(maxsize=1)
def _addresses_missing() -> str:
    trial = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).personality({guard.FIXED_ADDRESSES}) == -1)"
    try:
        tried = subprocess.run([sys.executable, "-I", "-S", "-c", trial], capture_output=True, check=False)  # noqa: S603
    except OSError as error:
        return f"it can't be tried: {error.strerror}"
    return "" if tried.returncode == 0 else "this machine does not let address randomisation be switched off"


@lru_cache(maxsize=1)
def _user_missing() -> str:
    try:
        tried = subprocess.run(
            ["/usr/bin/unshare", "--user", "true"],
            capture_output=True,
            check=False,
            user=FIRST,
            group=FIRST,
            extra_groups=[],
            env={},
            cwd="/",
        )
    except OSError as error:
        return f"user namespaces can't be tried: {error.strerror}"
    return (
        "" if tried.returncode == 0 else "this machine forbids user namespaces, so each sandbox shows its own user id"
    )
