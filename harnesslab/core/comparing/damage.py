"""Damaged bytes as a cause: two texts that are equal but where bytes of one could not be read."""

from __future__ import annotations

import re

from harnesslab.core.comparing.evidence import Cause, Evidence
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength
from harnesslab.core.trace.events import AnyEvent

_DAMAGED = re.compile("(?:\ufffd|[\ud800-\udfff]|\\\\ud[89a-f][0-9a-f]{2})+")
"""Marks of bytes that are no UTF-8: the replacement character, and half characters as they are and as written out."""
LOST = 8
"""Most characters that one run of damaged bytes stands for."""


def damage_hypothesis(strongest: Hypothesis, left: AnyEvent | None, right: AnyEvent | None) -> Hypothesis | None:
    """Say that the two sides differ in damaged bytes alone, going by the evidence of the strongest hypothesis."""
    rows = [row for row in strongest.evidence if row.a != row.b]
    sides = {side for row in rows if (side := damaged_side(row))}
    if not rows or not sides or any(not damaged_side(row) for row in rows):
        return None
    which = sides.pop() if len(sides) == 1 else "both"
    where = next((event.origin for event in ((left, right) if which == "A" else (right, left)) if event), "")
    place = f" ({where})" if where else ""
    why = f"bytes of {which} are damaged here{place}, and nothing else differs"
    return Hypothesis(
        Cause.DAMAGE, why, tuple(rows), strength=Strength.RECORDED, boundary=strongest.boundary, quote=rows[0]
    )


def damaged_side(row: Evidence) -> str:
    """Name the side whose text is the other's but for damaged bytes; empty where neither is."""
    for which, damaged, whole in (("A", row.a, row.b), ("B", row.b, row.a)):
        if _DAMAGED.search(damaged) and _fits(damaged, whole):
            return which
    return ""


def _fits(damaged: str, whole: str) -> bool:
    pieces = [re.escape(piece) for piece in _DAMAGED.split(damaged)]
    return re.fullmatch(f"(?s:.{{0,{LOST}}})".join(pieces), whole) is not None
