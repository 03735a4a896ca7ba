"""What keeps commands from the server that started them, and from making namespaces of their own.

A command that is the same user as the server could stop, signal or trace it, and one that can make a user
namespace could mount a file system without a limit. A filter of system calls refuses both.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_SYSTEM_CALLS = {
    "x86_64": {
        "kill": 62,
        "tkill": 200,
        "tgkill": 234,
        "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297,
        "pidfd_open": 434,
        "pidfd_getfd": 438,
        "prlimit64": 302,
        "fcntl": 72,
        "clone": 56,
        "clone3": 435,
        "unshare": 272,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "bpf": 321,
        "userfaultfd": 323,
        "perf_event_open": 298,
        "io_uring_setup": 425,
    },
    "aarch64": {
        "kill": 129,
        "tkill": 130,
        "tgkill": 131,
        "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240,
        "pidfd_open": 434,
        "pidfd_getfd": 438,
        "prlimit64": 261,
        "fcntl": 25,
        "clone": 220,
        "clone3": 435,
        "unshare": 97,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "bpf": 280,
        "userfaultfd": 282,
        "perf_event_open": 241,
        "io_uring_setup": 425,
    },
}
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = frozenset(_AUDIT)

FIXED_ADDRESSES = 0x0040000
"""ADDR_NO_RANDOMIZE of personality(2)."""

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NEW_USER = 0x10000000
_X32 = 0x40000000
_SETOWN, _SETOWN_EX = 8, 15
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION = 0x20080522
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def hide() -> None:
    """Let nobody of the same user trace this process or read its memory, environment and open files."""
    _prctl(_PR_SET_DUMPABLE, 0)


def fix_addresses() -> None:
    """Load the programs that this process becomes at the same addresses each time.

    This must come after the change of user: a program that root starts takes the wish back.
    """
    if ctypes.CDLL(None).personality(FIXED_ADDRESSES) == -1:
        raise OSError("addresses can't be fixed")


def appear_as(uid: int, user: int) -> None:
    """Show this process and all it starts as another user id than the machine's, in a user namespace of its own."""
    _prctl(_PR_SET_DUMPABLE, 1)  # else these files belong to root; no command runs yet that could look
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER):
        raise OSError(ctypes.get_errno(), "no user namespace")
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {user} 1"), ("gid_map", f"{uid} {user} 1")):
        with open(f"/proc/self/{name}", "w") as target:
            target.write(line)
    shed()


def shed() -> None:
    """Let no program started from here gain a capability again; needs CAP_SETPCAP."""
    library = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, for the lower and the upper half
    if library.capget(head, sets):
        raise OSError(ctypes.get_errno(), "capget")
    capability = 0
    while library.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3) == 0:
        capability += 1
    sets[2] = sets[5] = 0
    if library.capset(head, sets):
        raise OSError(ctypes.get_errno(), "capset")


class Filter:
    """The system calls that a command may not make; `server` is the process to protect."""

    def __init__(self, server: int) -> None:
        self._code = program(os.uname().machine, server)
        self._program = _Program(len(self._code) // 8, self._code)

    def apply(self) -> None:
        """Confine this process and all that it starts, for good."""
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(self._program))


def program(machine: str, server: int) -> bytes:
    """Return the filter's instructions; raises `KeyError` for a kind of machine it doesn't know."""
    calls = _SYSTEM_CALLS[machine]
    code = _step(_LOAD, _ARCHITECTURE) + _step(_EQUAL, _AUDIT[machine], 1, 0) + _step(_RETURN, _KILL)
    if machine == "x86_64":  # the same calls under other numbers
        code += _step(_LOAD, _NUMBER) + _step(_AT_LEAST, _X32, 0, 1) + _refuse(errno.ENOSYS)
    for name in ("add_key", "request_key", "keyctl", "bpf", "userfaultfd", "perf_event_open", "pidfd_getfd"):
        code += _rule(calls[name], _refuse(errno.EPERM))
    for name in ("clone3", "io_uring_setup"):  # callers fall back to the older calls
        code += _rule(calls[name], _refuse(errno.ENOSYS))
    for name in ("clone", "unshare"):
        code += _rule(calls[name], _when(_BITS, 0, _NEW_USER))
    for name in ("kill", "rt_sigqueueinfo"):  # the server, its group, and everybody
        for target in (server, -server, -1):
            code += _rule(calls[name], _when(_EQUAL, 0, target))
    for name in ("tkill", "tgkill", "rt_tgsigqueueinfo", "pidfd_open", "prlimit64"):
        code += _rule(calls[name], _when(_EQUAL, 0, server))
    # an owner of a file gets signals for what happens to it, of any number: another `kill`
    code += _rule(calls["fcntl"], _when(_EQUAL, 1, _SETOWN_EX))
    for target in (server, -server):
        both = _when(_EQUAL, 2, target)
        code += _rule(calls["fcntl"], _step(_LOAD, _ARGUMENTS + 8) + _step(_EQUAL, _SETOWN, 0, len(both) // 8) + both)
    return code + _step(_RETURN, _ALLOW)


def _step(operation: int, value: int, when: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, when, otherwise, value & 0xFFFFFFFF)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERROR | error)


def _when(test: int, argument: int, value: int) -> bytes:
    # the lower half of an argument alone: process ids and flags are 32 bits, and both machines are little-endian
    return _step(_LOAD, _ARGUMENTS + 8 * argument) + _step(test, value, 0, 1) + _refuse(errno.EPERM)


def _rule(number: int, body: bytes) -> bytes:
    return _step(_LOAD, _NUMBER) + _step(_EQUAL, number, 0, len(body) // 8) + body


def _prctl(option: int, first: int, second: int = 0) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")
