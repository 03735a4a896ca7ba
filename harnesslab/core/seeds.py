"""Seed streams: each case and purpose has its own seed, derived from stable names.

Deriving from a case's id instead of its position means that inserting a case changes no other's seed.
"""

from __future__ import annotations

from harnesslab.core.canonical import canonical_bytes, sha256

STREAMS = ("case-order", "request", "sampling", "evaluator", "environment")
"""Purposes that draw from streams of their own."""


def seed_of(text: str) -> int | None:
    """Return the seed that a text is, decimal digits below 2^63, or None."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    number = int(text)
    return number if number < 2**63 else None


def derive(root: int, stream: str, case: str, trial: int = 0, call: int = 0) -> int:
    """Return a 63-bit seed for one purpose, case, trial and call (0 where a policy seeds whole rollouts)."""
    name = canonical_bytes(["harnesslab.seed/1", str(root), stream, case, trial, call])
    return int.from_bytes(sha256(name)[:8], "big") >> 1
