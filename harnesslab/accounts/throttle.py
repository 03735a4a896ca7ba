"""A limit on guessing passwords: after a few failures a name, or an address, has to wait."""

from __future__ import annotations

from django.core.cache import cache

from harnesslab.core.canonical import bytes_digest

PER_NAME = 10
PER_ADDRESS = 50
"""An address may be a proxy's, behind which many people are."""
WAIT_S = 300


def must_wait(name: str, address: str) -> bool:
    """Say whether too many attempts failed lately."""
    return any(cache.get(key, 0) >= limit for key, limit in _keys(name, address))


def note_failure(name: str, address: str) -> None:
    """Count one; the count is forgotten after a while without another."""
    for key, _ in _keys(name, address):
        cache.add(key, 0, WAIT_S)
        cache.incr(key)
        cache.touch(key, WAIT_S)


def forget(name: str, address: str) -> None:
    """Start again after a login that succeeded."""
    cache.delete_many([key for key, _ in _keys(name, address)])


def _keys(name: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
    digest = bytes_digest(name.casefold().encode("utf-8", "replace"))
    return (f"login-name-{digest}", PER_NAME), (f"login-from-{bytes_digest(address.encode())}", PER_ADDRESS)
