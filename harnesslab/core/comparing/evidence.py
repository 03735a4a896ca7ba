"""What a diagnosis rests on: the causes there are, and rows of evidence with both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.comparing.manner import Kind, manner, quoted
from harnesslab.core.conditions.manifest import ConditionPair, Known
from harnesslab.core.contracts import scrub
from harnesslab.core.errors import NotCanonical
from harnesslab.core.trace.messages import text_of


class Cause(StrEnum):
    """What made two traces part."""

    USER = "user"
    DECLARED = "declared"
    """The manifests or settings declare a difference."""
    SAMPLING = "sampling"
    """Sampled at a temperature above 0 without a seed known to be the same."""
    BATCH = "batch"
    NUMERICS = "numerics"
    """Same input, nothing declared: undeclared numerics or a seed that was not honoured."""
    MODEL_OR_HARNESS = "model-or-harness"
    """The input is an importer's reconstruction, so the harness may have sent something else."""
    TEMPLATE = "template"
    HARNESS = "harness"
    ENVIRONMENT = "environment"
    TIMING = "timing"
    INFRA = "infra"
    EVALUATOR = "evaluator"
    SUBAGENT = "subagent"
    RETRIEVAL = "retrieval"
    MEMORY = "memory"
    CLOCK = "clock"
    NETWORK = "network"
    INPUT = "input"
    """The inputs can't have been the same, and what differs was not recorded."""
    DAMAGE = "damage"
    """Bytes of a source were damaged."""
    RECORDING = "recording"
    """How a run was recorded or read, which says nothing of the agent."""
    CASE = "case"
    """Two cases, or two tasks under one name."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of evidence: what was looked at, and what each side has there."""

    label: str
    a: str
    b: str


MODEL_CONDITIONS = ("model.", "engine.", "hardware.", "sampling.", "seeds.")
HARNESS_CONDITIONS = ("harness.", "budgets.", "tools.", "processing.")
ENVIRONMENT_CONDITIONS = ("environment.", "panel.case_digest", "tools.side_effects")
LOAD_CONDITIONS = ("serving.",)


EXCERPT_WORDS = 8
EXCERPT_WIDTH = 60
_PART_WORDS = 8
"""Words within which a named part, such as `[image/png 8×8, 268 bytes, sha256 …]`, begins."""
_NOT_RECORDED = "–"


def named(declared: Sequence[ConditionPair], prefixes: tuple[str, ...]) -> list[ConditionPair]:
    """Return the declared differences under some sections."""
    return [pair for pair in declared if pair.field.name.startswith(prefixes)]


def clause(pairs: Sequence[ConditionPair]) -> str:
    """Say which conditions the manifests declare different."""
    titles = [pair.field.title.lower() for pair in pairs]
    shown = ", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")
    if any(pair.field.section == "harness" for pair in pairs):
        return f"a declared harness change: {shown}"
    return f"the manifests declare a difference: {shown}"


def condition_rows(pairs: Sequence[ConditionPair]) -> list[Evidence]:
    """Return a row of evidence for each condition."""
    return [
        Evidence(
            pair.field.name,
            text(pair.a.value) if isinstance(pair.a, Known) else "unknown",
            text(pair.b.value) if isinstance(pair.b, Known) else "unknown",
        )
        for pair in pairs
    ]


def pair(label: str, a: JSON, b: JSON) -> Evidence:
    """Make a row of evidence of two values."""
    return Evidence(label, text(a), text(b))


def text(value: JSON) -> str:
    """Return any value as a person reads it: what has no canonical form as Python shows it, half characters escaped."""
    if value is None:
        return _NOT_RECORDED
    try:
        if isinstance(value, list) and any(isinstance(part, dict) for part in value):
            return readable(text_of(value))
        return readable(value) if isinstance(value, str) else canonical_bytes(value).decode()
    except NotCanonical:
        return f"a value ({type(value).__name__}) that is not JSON or is nested too deeply"


def short(value: str | None, width: int = 100) -> str:
    """Return the beginning of a text on one line, as a sentence names it."""
    line = " ".join(readable(value or "").split())
    return line if len(line) <= width else line[: width - 1] + "…"


def readable(value: str) -> str:
    """Return text with lone surrogates escaped, so that it can be written anywhere."""
    return value.encode("utf-8", "backslashreplace").decode()


def same(a: JSON, b: JSON) -> bool:
    """Say whether two values are the same JSON."""
    return canonical_bytes(a) == canonical_bytes(b)


def differ(a: Sequence[float] | None, b: Sequence[float] | None) -> bool:
    """Say whether both sequences are recorded and unequal."""
    return a is not None and b is not None and tuple(a) != tuple(b)


def excerpt(rows: Sequence[Evidence]) -> tuple[str, str] | None:
    """Return the first words from which two texts part, of the first row that differs; None where a side is empty."""
    row = next((row for row in rows if row.a != row.b), None)
    if row is None or _NOT_RECORDED in (row.a, row.b):
        return None
    little = manner(row.a, row.b)
    if little is not None and little.kinds & {Kind.WHITE_SPACE, Kind.INVISIBLE}:
        return quoted(row.a, row.b, EXCERPT_WIDTH)
    words_a, words_b = row.a.split(), row.b.split()
    if not words_a or not words_b or words_a == words_b:
        return None
    shorter = min(len(words_a), len(words_b))
    start = next((index for index in range(shorter) if words_a[index] != words_b[index]), shorter - 1)
    start = _whole_part(words_a, start)
    shown = _without_brackets(_first_words(words_a[start:]), _first_words(words_b[start:]))
    return shown if shown[0] != shown[1] else quoted(row.a, row.b, EXCERPT_WIDTH)


def _whole_part(words: Sequence[str], start: int) -> int:
    """Return where the named part begins that a word lies in, such as a picture: its digest alone says little."""
    for at in range(start, max(start - _PART_WORDS, -1), -1):
        if words[at].startswith(("[image", "[audio", "[file")):
            return at
        if at < start and words[at].endswith("]"):
            break
    return start


def _without_brackets(a: str, b: str) -> tuple[str, str]:
    """Leave out the JSON punctuation that two excerpts share at their beginning, and that at their ends."""
    pairs = enumerate(zip(a, b, strict=False))
    shared = next((at for at, (one, two) in pairs if one != two), min(len(a), len(b)))
    start = max(a.rfind(mark, 0, shared) for mark in '{["') + 1
    ends = '"]}' if start or a[-1:] == b[-1:] == "}" else ""
    rest_a, rest_b = a[start:].rstrip(ends), b[start:].rstrip(ends)
    return (rest_a, rest_b) if rest_a and rest_b and rest_a != rest_b else (a, b)


def _first_words(words: Sequence[str]) -> str:
    shown = " ".join(words[:EXCERPT_WORDS])
    return shown if len(shown) <= EXCERPT_WIDTH else shown[: EXCERPT_WIDTH - 1] + "…"


def only_volatile(a: JSON, b: JSON) -> str:
    """Name the scrub rules that make two unequal values equal; empty where none do."""
    return ", ".join(scrub.explaining(text(a), text(b)))
