"""The sentence that says where two traces part and why; it never contradicts the record."""

from __future__ import annotations

from harnesslab.core.comparing.comparison import Comparison
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.evidence import readable
from harnesslab.core.contracts.contract import TITLES, Scope


def sentence(comparison: Comparison) -> str:
    """Say where two traces part, at which boundary and why; steps are counted from one."""
    found, contract = comparison.contractual, comparison.contract
    first = f"{comparison.about_pair[:1].upper()}{comparison.about_pair[1:]}. " if comparison.about_pair else ""
    after = (
        _next_clause(comparison) + _raw_clause(comparison) + _tokens_clause(comparison) + _deciding_clause(comparison)
    )
    if found is None:
        return readable(first + _identical(comparison) + after)
    calls_only = contract.scope is Scope.TOOL_CALLS
    stop = "." if found.extra_steps is not None else ":"
    return readable(f"{first}{_place(found, calls_only)}{stop} {_reason(found)}.{after}")


def _identical(comparison: Comparison) -> str:
    level = TITLES[comparison.contract.level]
    if comparison.contract.scope is Scope.TOOL_CALLS and not comparison.counted:
        return "Neither made a tool call, so that there is nothing to compare."
    if comparison.contract.scope is Scope.TOOL_CALLS:
        return f"The tool calls are identical at the level {level}."
    steps = comparison.steps[0]
    return f"Identical in {f'all {steps} steps' if steps != 1 else 'the one step'} at the level {level}."


def _place(found: Divergence, calls_only: bool) -> str:
    """Say how far two traces are equal, and where they part."""
    token = f", from token {found.token_index + 1}" if found.token_index is not None else ""
    boundary = f"at the boundary {found.boundary}{token}"
    if found.extra_steps is not None and not (found.tool_call_index if calls_only else found.step):
        return "They part in the first step"
    if calls_only and not found.tool_call_index:
        return f"They part at the first tool call, in step {found.step + 1}, {boundary}"
    if not calls_only and found.step == 0:
        return f"They part in the first step, {boundary}"
    equal = _counted(found.tool_call_index or 0, "tool call") if calls_only else _counted(found.step, "step")
    if found.extra_steps is not None:
        return f"Identical for {equal}"
    if found.boundary == "model":
        return f"Identical for {equal}. At step {found.step + 1} the model parts them{token}"
    return f"Identical for {equal}. At step {found.step + 1}, {boundary}"


def _reason(found: Divergence) -> str:
    """Return the clause that says why, with the words from which the two sides part after its first part."""
    if found.excerpt is None:
        return found.why
    first, semicolon, rest = found.why.partition("; ")
    return f'{first}, from "{found.excerpt[0]}" against "{found.excerpt[1]}"{semicolon}{rest}'


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _raw_clause(comparison: Comparison) -> str:
    """Name the first raw difference where it is not the one the contract counts, and what the contract left out."""
    raw, found, contract = comparison.raw, comparison.contractual, comparison.contract
    if raw is None or (found is not None and (raw.a, raw.b) == (found.a, found.b)):
        return ""
    used = len({*comparison.removed[0].counts, *comparison.removed[1].counts})
    rules = f"{_counted(used, 'scrub rule')} removed something" if used else ""
    where = f"first raw difference is at step {raw.step + 1}, boundary {raw.boundary}: {raw.why}."
    if found is not None:
        return f" That is at the level {TITLES[contract.level]}{', where ' + rules if rules else ''}; the {where}"
    return f" {rules[:1].upper()}{rules[1:]}; the {where}" if rules else f" The {where}"


def _next_clause(comparison: Comparison) -> str:
    """Name the difference after one of white space, a date or a host alone."""
    if comparison.next_difference is None:
        return ""
    step, boundary = comparison.next_difference
    return f" Apart from that they differ first at step {step + 1}, boundary {boundary}."


def _tokens_clause(comparison: Comparison) -> str:
    """Say that other tokens stand under equal words, which no level but token ids counts."""
    if comparison.tokens_part is None:
        return ""
    return f" Token ids differ under equal words, from step {comparison.tokens_part + 1} on."


def _deciding_clause(comparison: Comparison) -> str:
    """Name the action that the outcome could hang on."""
    action = comparison.deciding
    if action is None:
        return ""
    article = "an" if action.kind[0] in "aeiou" else "a"
    return (
        f" The outcomes differ; a candidate for what decided is {action.side}'s step {action.step + 1}, "
        f"{article} {action.kind} ({action.what}); nothing here proves it."
    )
