"""Why two user turns differ, and who wrote them: a person, a simulator, or a template of the harness.

Importers state it as `provenance` in the turn's `extra`; where nobody does, who wrote it can't be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from harnesslab.core.comparing.evidence import Cause, Evidence, pair
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength, harness_hypothesis
from harnesslab.core.comparing.input_difference import InputDifference, first_input_difference
from harnesslab.core.comparing.manner import Kind, Manner, manner
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import AnyEvent, UserTurn
from harnesslab.core.trace.messages import text_of, view
from harnesslab.core.trace.parts import other_parts

PERSON, SIMULATOR, TEMPLATE = "person", "simulator", "template"
_REFERENCE = re.compile(r"[a-z]+://[0-9a-f]{16,}")
"""A pointer to content that a format keeps elsewhere."""
_UNSEEN = "who wrote it: a person, a simulator or a template"


def provenance(turn: UserTurn) -> str:
    """Say who wrote a turn; empty where nobody recorded it."""
    stated = turn.extra.get("provenance")
    if stated in (PERSON, SIMULATOR, TEMPLATE):
        return str(stated)
    return SIMULATOR if turn.simulated else ""


def user_hypothesis(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    left: UserTurn,
    right: UserTurn,
    declared: Sequence[ConditionPair],
) -> Hypothesis:
    """Explain two user turns at event positions `at_a` and `at_b`."""
    opening = "model_call" not in a.kinds[:at_a]
    if opening and (inserted := _inserted(a, b, at_a, at_b)) is not None:
        row = pair(inserted.label, inserted.a, inserted.b)
        return replace(harness_hypothesis(inserted.why, (row,), declared), boundary="harness", quote=row)
    row = pair("user", left.content, right.content)
    return replace(_by_writer(left, right, row, declared, opening=opening), quote=row)


def _by_writer(
    left: UserTurn, right: UserTurn, row: Evidence, declared: Sequence[ConditionPair], *, opening: bool
) -> Hypothesis:
    little, word = manner(row.a, row.b), other_parts(left.content, right.content)
    alone = f"; the two differ in {little.words} alone" if little else ""
    alone = f" in its {word} alone" if word else alone
    what = "the opening message" if opening else "a message to the model"
    writers = {provenance(left), provenance(right)}
    if little is not None and little.blank:
        why = f"{what} differs in {little.words} alone"
        return Hypothesis(Cause.HARNESS, why, (row,), boundary="harness", passing=True)
    if TEMPLATE in writers:
        why = f"{what}, which the harness makes of a template, differs{alone}"
        if (passing := _passing(little)) is not None:
            return Hypothesis(passing, why, (row,), boundary="harness", passing=True)
        return replace(harness_hypothesis(why, (row,), declared), boundary="harness")
    if SIMULATOR in writers:
        return Hypothesis(Cause.USER, f"the simulated user said something different{alone}", (row,))
    if not opening:
        return Hypothesis(Cause.USER, f"the user said something different{alone}", (row,))
    if writers == {PERSON}:
        return Hypothesis(Cause.USER, f"the opening message, which a person wrote, differs{alone}", (row,))
    cause = _passing(little) or Cause.USER
    why = f"the opening message differs{alone}"
    return Hypothesis(
        cause, why, (row,), strength=Strength.SUGGESTED, unseen=(_UNSEEN,), passing=cause is not Cause.USER
    )


def _passing(little: Manner | None) -> Cause | None:
    """Return the cause of a difference in a date or a host's name alone."""
    if little is None or not little.kinds <= {Kind.DATE, Kind.HOST}:
        return None
    return Cause.CLOCK if Kind.DATE in little.kinds else Cause.ENVIRONMENT


def _inserted(a: TraceReader, b: TraceReader, at_a: int, at_b: int) -> InputDifference | None:
    """Return what one first request holds more than the other, where nothing else of them differs at that place."""
    first_a, first_b = _next_call(a, at_a), _next_call(b, at_b)
    if first_a is None or first_b is None:
        return None
    difference = first_input_difference(a, b, first_a, first_b)
    if difference is None or difference.boundary != "harness" or not difference.one_sided:
        return None
    return difference


def lone_turn(
    a: TraceReader,
    b: TraceReader,
    at_a: int,
    at_b: int,
    left: AnyEvent,
    right: AnyEvent,
    declared: Sequence[ConditionPair],
) -> Hypothesis:
    """Explain a user turn that stands in one trace where the other went on with something else."""
    which, turn, other, at_other = ("A", left, b, at_b) if isinstance(left, UserTurn) else ("B", right, a, at_a)
    without = "B" if which == "A" else "A"
    said = text_of(turn.content) if isinstance(turn, UserTurn) else ""
    inside = _inside(other, at_other, said)
    if inside is not None:
        return _kept_inside(which, without, said, inside)
    writer = provenance(turn) if isinstance(turn, UserTurn) else ""
    if writer == TEMPLATE:
        why = f"the harness sent a message of its template in {which} and not in {without}"
        return replace(harness_hypothesis(why, (), declared), boundary="harness")
    unseen = () if writer else (_UNSEEN,)
    return Hypothesis(Cause.USER, f"the user spoke in {which} and not in {without}", boundary="user", unseen=unseen)


def _inside(other: TraceReader, at_other: int, said: str) -> str | None:
    """Return the user message of the next request that stands for a turn which a trace doesn't record as one."""
    call = _next_call(other, at_other)
    if call is None or "user_turn" in other.kinds[:call]:
        return None
    texts = [seen.text for seen in map(view, other.messages(call)) if seen.role == "user"]
    return said if said in texts else texts[-1] if texts else None


def _kept_inside(which: str, without: str, said: str, inside: str) -> Hypothesis:
    """Explain a turn that one trace keeps inside its request alone, word for word, by reference, or in other words."""
    row = pair("user", *((said, inside) if which == "A" else (inside, said)))
    if inside == said:
        why = f"a message of the user is recorded as a turn in {which}, and in {without} inside the request alone"
        return Hypothesis(Cause.RECORDING, why, (row,), boundary="user", strength=Strength.RECORDED)
    if _REFERENCE.fullmatch(inside.strip()):
        why = f"{without} holds a reference where {which} holds the words of the user; what it refers to is not there"
        return Hypothesis(Cause.RECORDING, why, (row,), boundary="user", strength=Strength.RECORDED)
    why = f"the opening message differs, which {without} records inside its request alone"
    return Hypothesis(Cause.USER, why, (row,), boundary="user", strength=Strength.SUGGESTED, unseen=(_UNSEEN,))


def _next_call(reader: TraceReader, after: int) -> int | None:
    return next((index for index in range(after, len(reader.kinds)) if reader.kinds[index] == "model_call"), None)
