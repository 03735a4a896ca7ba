"""Why equal inputs were answered differently: conditions that act, sampling, batches, numerics, or another input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.acting import (
    OF_THE_INPUT,
    acting_conditions,
    acting_settings,
    drawn_under,
    greedy,
    known_of_execution,
    not_honoured,
    seed,
    temperature,
)
from harnesslab.core.comparing.evidence import (
    HARNESS_CONDITIONS,
    LOAD_CONDITIONS,
    Cause,
    Evidence,
    clause,
    condition_rows,
    differ,
    named,
    pair,
    same,
    text,
)
from harnesslab.core.comparing.hypotheses import NO_WORDS, Hypothesis, Strength, ranked
from harnesslab.core.comparing.manner import manner
from harnesslab.core.comparing.same_input import InputRecord, input_record
from harnesslab.core.conditions.manifest import ConditionPair
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import Fidelity, ModelCall


@dataclass(frozen=True, slots=True)
class Calls:
    """Two model calls at event positions of their traces, with the conditions that are declared to differ."""

    a: TraceReader
    b: TraceReader
    at_a: int
    at_b: int
    left: ModelCall
    right: ModelCall
    declared: tuple[ConditionPair, ...]

    @property
    def rebuilt(self) -> bool:
        """Whether an importer put one of the inputs together."""
        return Fidelity.REBUILT in (self.left.fidelity, self.right.fidelity)


def answered_alike(left: ModelCall, right: ModelCall) -> bool:
    """Say whether two answers have the same words and ask for the same calls."""
    return _output_part(left, right)[0] in ("token ids", "log-probabilities", "finish reason", "rejected")


def answer_hypotheses(calls: Calls, inputs: str = "", made_equal: tuple[str, ...] = ()) -> tuple[Hypothesis, ...]:
    """Explain two answers whose recorded inputs are equal, or differ in `inputs` alone; the strongest comes first.

    `made_equal` says what was done to the inputs before they were equal.
    """
    left, right = calls.left, calls.right
    record = input_record(calls.a, calls.b, left, right)
    token = _token_index(left, right)
    label, text_a, text_b = _output_part(left, right)
    row = Evidence(label, text_a, text_b)
    rows = (row, *(_token_rows(left, right, token) if token is not None else ()))
    little = manner(text_a, text_b) if label in ("text", "reasoning", "refusal") else None
    way = f"; they differ in {little.words} alone" if little else ""
    made = _Answers(calls, record, f"{_lead(calls, inputs, record, label)}{way}", rows, token)
    found = [replace(each, supports=(*each.supports, *made_equal)) for each in made.hypotheses()]
    if record.contradicts:
        found = [made.other_input(), *(each.doubted(*record.contradicts) for each in found)]
    return ranked(found)


def _lead(calls: Calls, inputs: str, record: InputRecord, label: str) -> str:
    """Say how the inputs compare and how the answers do."""
    answered = "answered differently"
    if label in ("token ids", "log-probabilities", "finish reason"):
        answered = f"answered in the same words, with {'another' if label == 'finish reason' else 'other'} {label}"
    if inputs:
        return f"{inputs} were {answered}"
    if record.doubts:
        return f"inputs that are not shown equal ({'; '.join(record.doubts)}) were {answered}"
    if calls.rebuilt and any(each.field.name == "harness.name" for each in calls.declared):
        return f"inputs of two harnesses, equal in what is recorded of them, were {answered}"
    if calls.rebuilt and record.counted:
        return f"the same input, as far as recorded ({'; '.join(record.supports)}), was {answered}"
    return f"the same input was {answered}"


@dataclass(frozen=True, slots=True)
class _Answers:
    """Makes the hypotheses of two answers, which share their words, evidence and what of the inputs is recorded."""

    calls: Calls
    record: InputRecord
    lead: str
    rows: tuple[Evidence, ...]
    token: int | None

    def _make(
        self,
        cause: Cause,
        why: str,
        strength: Strength,
        rows: Sequence[Evidence] = (),
        *supports: str,
        boundary: str = "",
    ) -> Hypothesis:
        return Hypothesis(
            cause,
            why,
            (*self.rows, *rows),
            self.token,
            boundary,
            None,
            strength,
            (*self.record.supports, *supports),
            (),
            (*self.record.doubts, *self.record.unseen),
            self.rows[0],
            self.lead,
        )

    def other_input(self) -> Hypothesis:
        """Say that the inputs can't have been the same, naming what the manifests declare of the harness."""
        against = "; ".join(self.record.contradicts)
        why = f"the inputs can't have been the same: {against}; what differs was not recorded"
        conditions = named(self.calls.declared, HARNESS_CONDITIONS)
        if conditions:
            why = f"{why}; {clause(conditions)}"
        cause = Cause.DECLARED if conditions else Cause.INPUT
        made = self._make(cause, why, Strength.RECORDED, condition_rows(conditions), against, boundary="harness")
        return replace(made, quote=NO_WORDS)

    def hypotheses(self) -> Iterator[Hypothesis]:
        """Yield what may explain the answers."""
        calls, left, right = self.calls, self.calls.left, self.calls.right
        yield from self._declared()
        if left.served_from_cache != right.served_from_cache:
            yield self._make(Cause.BATCH, f"{self.lead}; one answer came from a cache", Strength.DECLARED)
        if left.fingerprint and right.fingerprint and left.fingerprint != right.fingerprint:
            row = pair("fingerprint", left.fingerprint, right.fingerprint)
            why = f"{self.lead}; the provider names another backend (fingerprint)"
            yield self._make(Cause.DECLARED, why, Strength.DECLARED, (row,), "the fingerprints differ")
        load = named(calls.declared, LOAD_CONDITIONS)
        if load:
            yield self._make(Cause.BATCH, f"{self.lead}; {clause(load)}", Strength.DECLARED, condition_rows(load))
        if calls.rebuilt and not self.record.counted:
            yield self._rebuilt()
        yield self._drawn()

    def _declared(self) -> Iterator[Hypothesis]:
        calls, left, right = self.calls, self.calls.left, self.calls.right
        settings = acting_settings(calls.a, calls.b, left, right)
        words = [row for row in settings if row.label in OF_THE_INPUT]
        if words:
            said = ", ".join(row.label for row in words)
            why = f"the requests carry other {said}, so that the inputs are not the same"
            yield self._make(Cause.HARNESS, why, Strength.RECORDED, words, boundary="harness")
        conditions = acting_conditions(calls.a, calls.b, left, right, calls.declared)
        settings = [row for row in settings if row not in words]
        if left.model and right.model and left.model != right.model:
            settings.insert(0, pair("model", left.model, right.model))
        if conditions or settings:
            labels = ", ".join(row.label for row in settings)
            what = clause(conditions) if conditions else f"the requests differ in {labels}"
            rows = (*settings, *condition_rows(conditions))
            yield self._make(Cause.DECLARED, f"{self.lead}; {what}", Strength.DECLARED, rows, what)

    def _rebuilt(self) -> Hypothesis:
        calls = self.calls
        recorded = "" if "recorded" in self.lead else ", as far as recorded"
        why = f"{self.lead}{recorded}; the input is an importer's reconstruction"
        if conditions := drawn_under(calls.a, calls.b, calls.left, calls.right):
            why = f"{why}; {conditions}"
        others = named(calls.declared, HARNESS_CONDITIONS)
        if others:
            why = f"{why}; {clause(others)}"
        return self._make(Cause.MODEL_OR_HARNESS, why, Strength.SUGGESTED, condition_rows(others))

    def _drawn(self) -> Hypothesis:
        """Explain by sampling, or where nothing is drawn, by numerics."""
        a, b, left, right = self.calls.a, self.calls.b, self.calls.left, self.calls.right
        conditions = drawn_under(a, b, left, right)
        seeds = seed(a, left), seed(b, right)
        if greedy(a, b, left, right):
            if seeds != (None, None) and not same(*seeds):
                conditions = f"{conditions}: at temperature 0 a seed draws nothing"
            known = known_of_execution(a, b)
            why = f"{self.lead}; {conditions}; nothing else declared: numerics, batch or something undeclared ({known})"
            return self._make(Cause.NUMERICS, why, Strength.SUGGESTED, (), conditions)
        if not_honoured(a, b, left, right):
            why = f"{self.lead}; {conditions}, which was shown not to be honoured"
            return self._make(Cause.SAMPLING, why, Strength.SUGGESTED, (), "a seed that was not honoured")
        if seeds == (None, None) or not same(*seeds) or temperature(a, left) is None:
            conditions = conditions or "neither temperature nor seed recorded"
            if seeds != (None, None) and temperature(a, left) is None:
                conditions = f"temperature not recorded, {conditions}"
            return self._make(Cause.SAMPLING, f"{self.lead}; {conditions}", Strength.SUGGESTED, (), conditions)
        nothing = "nothing else declared: undeclared numerics or a seed that was not honoured"
        return self._make(Cause.NUMERICS, f"{self.lead}; {conditions}, {nothing}", Strength.SUGGESTED, (), conditions)


def _output_part(left: ModelCall, right: ModelCall) -> tuple[str, str, str]:
    """Return (part, A, B) of the first part of two answers that differs."""
    for name in ("refusal", "reasoning", "text"):
        one, two = getattr(left, name), getattr(right, name)
        if one != two:
            return name, text(one), text(two)
    calls_a = "\n".join(f"{call.name} {_call_text(call.raw, call.arguments)}" for call in left.tool_calls)
    calls_b = "\n".join(f"{call.name} {_call_text(call.raw, call.arguments)}" for call in right.tool_calls)
    if calls_a != calls_b:
        return "tool calls", text(calls_a or None), text(calls_b or None)
    if left.finish_reason != right.finish_reason:
        return "finish reason", text(left.finish_reason), text(right.finish_reason)
    if differ(left.token_ids, right.token_ids):
        return "token ids", text(list(left.token_ids or ())), text(list(right.token_ids or ()))
    if differ(left.logprobs, right.logprobs):
        return "log-probabilities", text(list(left.logprobs or ())), text(list(right.logprobs or ()))
    return "rejected", text(left.rejected), text(right.rejected)


def _call_text(raw: str | None, arguments: JSON) -> str:
    return raw if raw is not None else text(arguments)


def _token_index(left: ModelCall, right: ModelCall) -> int | None:
    if left.token_ids is None or right.token_ids is None or left.token_ids == right.token_ids:
        return None
    for index, (one, two) in enumerate(zip(left.token_ids, right.token_ids, strict=False)):
        if one != two:
            return index
    return min(len(left.token_ids), len(right.token_ids))


def _token_rows(left: ModelCall, right: ModelCall, token: int) -> list[Evidence]:
    rows = [pair("first differing token", _at(left.token_ids, token), _at(right.token_ids, token))]
    if left.logprobs is not None and right.logprobs is not None:
        rows.append(pair("log-probability", _at(left.logprobs, token), _at(right.logprobs, token)))
    if left.alternatives is not None or right.alternatives is not None:
        rows.append(pair("alternatives", _at(left.alternatives, token), _at(right.alternatives, token)))
    return rows


def _at(items: Sequence[JSON] | None, index: int) -> JSON:
    return items[index] if items is not None and index < len(items) else None
