"""A comparison as JSON: what the API, the page's report and the command line return."""

from __future__ import annotations

from harnesslab.core.comparing.comparison import Comparison
from harnesslab.core.comparing.deciding_action import DecidingAction
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.extra_steps import ExtraSteps
from harnesslab.core.comparing.hypotheses import Hypothesis
from harnesslab.core.comparing.sentence import sentence
from harnesslab.core.contracts.contract import LADDER
from harnesslab.queries.read_model import ReadModel


class EvidenceRow(ReadModel):
    """What was looked at, and what each side has there."""

    label: str
    a: str
    b: str


class HypothesisRow(ReadModel):
    """One explanation of a difference, with what of the record speaks for it, against it, and what can't be seen."""

    cause: str
    boundary: str
    step: int
    sentence: str
    supports: list[str]
    contradicts: list[str]
    unseen: list[str]


class ExtraStepsRow(ReadModel):
    """Steps that one side alone has, and the steps from which both go on alike; all count from 0."""

    side: str
    steps: list[int]
    goes_on: tuple[int, int]
    to_the_end: bool


class DecidingActionRow(ReadModel):
    """The first differing action that the outcome could hang on: a candidate; its step counts from 0."""

    side: str
    step: int
    event: int
    kind: str
    what: str


class FirstDivergence(ReadModel):
    """Where two traces part and why; positions count from 0."""

    step: int
    boundary: str
    cause: str
    why: str
    event_a: int | None
    event_b: int | None
    tool_call_index: int | None
    token_index: int | None
    excerpt: tuple[str, str] | None
    """The words from which the two sides part."""
    evidence: list[EvidenceRow]
    hypotheses: list[HypothesisRow]
    """What may explain it, the strongest first."""
    extra_steps: ExtraStepsRow | None
    about_pair: str
    """What is said first: that these are two cases, or two recordings of one run."""


class ComparisonResult(ReadModel):
    """A comparison as JSON: what the API and the command line return."""

    a: str
    b: str
    identical: bool
    level: str
    scope: str
    rules: list[str]
    comparator: str
    sentence: str
    first_divergence: FirstDivergence | None
    first_raw_difference: FirstDivergence | None
    ladder: dict[str, str]
    counts: dict[str, int]
    steps: tuple[int, int]
    outcomes: tuple[str, str]
    outcome_changed: bool
    rejoins: bool
    scrubbed: dict[str, dict[str, int]]
    declared_differences: list[str]
    about_pair: str
    tokens_part: int | None
    """The step from which token ids differ under equal words."""
    deciding_action: DecidingActionRow | None


def result(name_a: str, name_b: str, comparison: Comparison) -> ComparisonResult:
    """Return a comparison as the JSON read model."""
    summary = comparison.summary
    return ComparisonResult(
        a=name_a,
        b=name_b,
        identical=comparison.identical,
        level=comparison.contract.level.value,
        scope=comparison.contract.scope.value,
        rules=list(comparison.contract.rules),
        comparator=comparison.contract.key.partition("|")[0],
        sentence=sentence(comparison),
        first_divergence=_divergence(comparison.contractual),
        first_raw_difference=_divergence(comparison.raw),
        ladder={level.value: comparison.ladder[level].value for level in LADDER},
        counts={
            "equal": summary.equal,
            "equal_after_scrub": summary.scrubbed,
            "changed": summary.changed,
            "moved": summary.moved,
            "only_a": summary.only_a,
            "only_b": summary.only_b,
            "edits": summary.edits,
        },
        steps=comparison.steps,
        outcomes=comparison.outcomes,
        outcome_changed=comparison.outcomes[0] != comparison.outcomes[1],
        rejoins=summary.rejoins_at is not None,
        scrubbed={"a": dict(comparison.removed[0].counts), "b": dict(comparison.removed[1].counts)},
        declared_differences=[pair.field.name for pair in comparison.declared],
        about_pair=comparison.about_pair,
        tokens_part=comparison.tokens_part,
        deciding_action=_deciding(comparison.deciding),
    )


def _divergence(found: Divergence | None) -> FirstDivergence | None:
    if found is None:
        return None
    return FirstDivergence(
        step=found.step,
        boundary=found.boundary,
        cause=found.cause.value,
        why=found.why,
        event_a=found.a,
        event_b=found.b,
        tool_call_index=found.tool_call_index,
        token_index=found.token_index,
        excerpt=(_clean(found.excerpt[0]), _clean(found.excerpt[1])) if found.excerpt else None,
        evidence=[EvidenceRow(label=row.label, a=_clean(row.a), b=_clean(row.b)) for row in found.evidence],
        hypotheses=[_hypothesis(each, found) for each in found.hypotheses],
        extra_steps=_extra(found.extra_steps),
        about_pair=found.about_pair,
    )


def _hypothesis(hypothesis: Hypothesis, found: Divergence) -> HypothesisRow:
    return HypothesisRow(
        cause=hypothesis.cause.value,
        boundary=hypothesis.boundary or found.boundary,
        step=found.step if hypothesis.step is None else hypothesis.step,
        sentence=_clean(hypothesis.why),
        supports=[_clean(text) for text in hypothesis.supports],
        contradicts=[_clean(text) for text in hypothesis.contradicts],
        unseen=[_clean(text) for text in hypothesis.unseen],
    )


def _extra(extra: ExtraSteps | None) -> ExtraStepsRow | None:
    if extra is None:
        return None
    return ExtraStepsRow(side=extra.side, steps=list(extra.steps), goes_on=extra.goes_on, to_the_end=extra.to_the_end)


def _deciding(action: DecidingAction | None) -> DecidingActionRow | None:
    if action is None:
        return None
    return DecidingActionRow(
        side=action.side, step=action.step, event=action.event, kind=action.kind, what=_clean(action.what)
    )


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
