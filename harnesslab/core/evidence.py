"""What a diagnosis rests on: the cause, the finding, and rows of evidence with both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.manifest import ConditionPair, Known
from harnesslab.core.messages import text_of


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
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of evidence: what was looked at, and what each side has there."""

    label: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The cause of a difference and a clause that says why; an empty boundary means the events' own."""

    cause: Cause
    why: str
    evidence: tuple[Evidence, ...] = ()
    token_index: int | None = None
    boundary: str = ""


MODEL_CONDITIONS = ("model.", "engine.", "hardware.", "sampling.", "seeds.")
HARNESS_CONDITIONS = ("harness.", "budgets.", "tools.", "processing.")
ENVIRONMENT_CONDITIONS = ("environment.", "panel.case_digest", "tools.side_effects")
LOAD_CONDITIONS = ("serving.",)


def named(declared: Sequence[ConditionPair], prefixes: tuple[str, ...]) -> list[ConditionPair]:
    return [pair for pair in declared if pair.field.name.startswith(prefixes)]


def clause(pairs: Sequence[ConditionPair]) -> str:
    titles = [pair.field.title.lower() for pair in pairs]
    shown = ", ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")
    return f"the manifests declare a difference: {shown}"


def condition_rows(pairs: Sequence[ConditionPair]) -> list[Evidence]:
    return [
        Evidence(
            pair.field.name,
            text(pair.a.value) if isinstance(pair.a, Known) else "unknown",
            text(pair.b.value) if isinstance(pair.b, Known) else "unknown",
        )
        for pair in pairs
    ]


def pair(label: str, a: JSON, b: JSON) -> Evidence:
    return Evidence(label, text(a), text(b))


def text(value: JSON) -> str:
    if value is None:
        return "–"
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return text_of(value)
    return value if isinstance(value, str) else canonical_bytes(value).decode()


def same(a: JSON, b: JSON) -> bool:
    return canonical_bytes(a) == canonical_bytes(b)


def differ(a: Sequence[float] | None, b: Sequence[float] | None) -> bool:
    """Say whether both sequences are recorded and unequal."""
    """Say whether two values are the same JSON."""
    """Return a value as a person reads it."""
    """Make a row of evidence of two values."""
    """Return a row of evidence for each condition."""
    """Say which conditions the manifests declare different."""
    """Return the declared differences under some sections."""
    return a is not None and b is not None and tuple(a) != tuple(b)


def harness_finding(why: str, evidence: tuple[Evidence, ...], declared: Sequence[ConditionPair]) -> Finding:
    """Blame the harness, naming what the manifests declare of it."""
    conditions = named(declared, HARNESS_CONDITIONS)
    if conditions:
        return Finding(Cause.DECLARED, f"{why}; {clause(conditions)}", (*evidence, *condition_rows(conditions)))
    return Finding(Cause.HARNESS, why, evidence)
