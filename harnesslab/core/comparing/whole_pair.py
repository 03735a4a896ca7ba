"""What two traces are to each other before any of their events is weighed: two cases, or two recordings of one run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rapidfuzz.distance import Indel

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.evidence import Cause, Evidence, pair, short
from harnesslab.core.comparing.hypotheses import Hypothesis, Strength
from harnesslab.core.comparing.manner import manner
from harnesslab.core.comparing.openings import SIMULATOR, TEMPLATE, provenance
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import ModelCall, UserTurn
from harnesslab.core.trace.messages import text_of, view

CALLS = 40
"""Model calls of each trace that are looked at."""
TELLING = 40
"""Characters from which an equal answer is no coincidence."""
MOSTLY = 0.8
OTHER_TASK = 0.3
"""Share of words below which two openings ask for two things."""
_MADE = re.compile(r"(?:instruction-|request )[0-9a-f]{12}")
_GENERATED = re.compile(r"(?:call|toolu|fc)_[0-9A-Za-z]{12,}")


def pair_hypothesis(a: TraceReader, b: TraceReader) -> Hypothesis | None:
    """Say what is said first of a pair; None where nothing is."""
    return _one_run(a, b) or _two_cases(a, b)


def _two_cases(a: TraceReader, b: TraceReader) -> Hypothesis | None:
    case_a, case_b = _case(a), _case(b)
    opening_a, opening_b = _opening(a), _opening(b)
    if opening_a is None or opening_b is None:
        texts = None
    else:
        texts = opening_a[0], opening_b[0]
        if texts[0] == texts[1] or manner(*texts) is not None:
            return None
    rows = (Evidence("opening", *map(short, texts)),) if texts else ()
    if case_a is not None and case_b is not None and case_a != case_b:
        why = f"they are of two cases, “{short(str(case_a))}” and “{short(str(case_b))}”"
        return Hypothesis(Cause.CASE, why, (pair("case", case_a, case_b), *rows), strength=Strength.RECORDED)
    writers = {each[1] for each in (opening_a, opening_b) if each is not None}
    if texts is None or TEMPLATE in writers or not _other_task(*texts):
        return None
    if case_a is not None and case_a == case_b and SIMULATOR in writers:
        return None  # a simulator words one task anew in each trial
    named = f" under one name, “{short(str(case_a))}”" if case_a is not None and case_a == case_b else ""
    return Hypothesis(Cause.CASE, f"they were asked for two tasks{named}", rows, strength=Strength.RECORDED)


def _other_task(a: str, b: str) -> bool:
    """Say whether two openings ask for two things: other words in another order, and few telling ones shared."""
    words_a, words_b = (re.findall(r"\w+", text.lower()) for text in (a, b))
    if min(len(words_a), len(words_b)) < 4 or Indel.normalized_similarity(words_a, words_b) >= OTHER_TASK:
        return False
    telling_a, telling_b = ({word for word in words if len(word) >= 4} for words in (words_a, words_b))
    shared = len(telling_a & telling_b) / max(1, min(len(telling_a), len(telling_b)))
    return shared < OTHER_TASK


def _case(reader: TraceReader) -> JSON:
    """Return the name that the source gives the case; one that an importer made of the instruction is none."""
    name = reader.manifest.value("panel.case")
    return None if isinstance(name, str) and _MADE.fullmatch(name) else name


def _opening(reader: TraceReader) -> tuple[str, str] | None:
    """Return (text, who wrote it) of the first words of the user; None where none are recorded."""
    for index, kind in enumerate(reader.kinds):
        event = reader.event(index) if kind in ("user_turn", "model_call") else None
        if isinstance(event, UserTurn):
            return text_of(event.content), provenance(event)
        if isinstance(event, ModelCall):
            said = [seen.text for seen in map(view, reader.messages(index)) if seen.role in ("user", "human")]
            return (said[-1], "") if said else None
    return None


def _one_run(a: TraceReader, b: TraceReader) -> Hypothesis | None:
    """Say that two imported traces are of one run, by ids that no two runs share, or by answers in two formats."""
    if not a.identity.format or not b.identity.format:
        return None
    calls_a, calls_b = list(_calls(a)), list(_calls(b))
    shared = _ids(calls_a) & _ids(calls_b)
    alike, compared = _alike(calls_a, calls_b)
    if a.identity.format == b.identity.format:
        if not shared or alike < compared:
            return None
        why = "they are two recordings of one run: the model's answers have the same ids, so that no agent differed"
    else:
        if not (shared or alike >= 2) or not compared or alike < MOSTLY * compared:
            return None
        formats = f"{a.identity.format} and {b.identity.format}"
        why = f"they are two readings of one run, by the importers {formats}, so that no agent differed"
    rows = (pair("format", a.identity.format, b.identity.format),)
    supports = (f"{len(shared)} ids that no two runs share", f"{alike} of {compared} answers equal")
    return Hypothesis(Cause.RECORDING, why, rows, strength=Strength.RECORDED, supports=supports)


def _calls(reader: TraceReader) -> Iterator[ModelCall]:
    count = 0
    for index, kind in enumerate(reader.kinds):
        event = reader.event(index) if kind == "model_call" else None
        if isinstance(event, ModelCall) and event.error is None:
            yield event
            count += 1
        if count == CALLS:
            return


def _ids(calls: list[ModelCall]) -> set[str]:
    ids = {call.response_id for call in calls if call.response_id}
    return ids | {each.id for call in calls for each in call.tool_calls if _GENERATED.fullmatch(each.id)}


def _alike(calls_a: list[ModelCall], calls_b: list[ModelCall]) -> tuple[int, int]:
    """Return (telling answers that are equal, answers compared), whatever stands between them in either trace."""
    said_a, said_b = ([_said(call) for call in calls if _said(call)] for calls in (calls_a, calls_b))
    compared = min(len(said_a), len(said_b))
    equal = [one for one in said_a if any(_same_words(one, two) for two in said_b)]
    telling = [said for said in equal if len(said) >= TELLING]
    return (min(len(equal), compared) if telling else 0), compared


def _same_words(one: str, two: str) -> bool:
    """Say whether two answers are one, where a format may keep an action in its words or apart."""
    if one == two:
        return True
    return min(len(one), len(two)) >= TELLING and (one.startswith(two) or two.startswith(one))


def _said(call: ModelCall) -> str:
    """Return the words of an answer, or else what it calls."""
    calls = [f"{each.name} {text_of(each.arguments)}" for each in call.tool_calls]
    return (call.text or "").strip() or "\n".join(calls)
