"""What a rerun found, in words: its rate with mode, what was live, level and population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harnesslab.core.contracts.contract import TITLES, Level
from harnesslab.core.measuring.statistics import Rate
from harnesslab.core.running.predicates import Predicate
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.store.models import Rerun


def finding(
    rerun: Rerun, plan: RerunPlan, same: Rate | None, bad: Rate | None, population: str, *, own_tools: bool
) -> str:
    """Say what a rerun found, with its rate, mode, level and population."""
    forked = f" from step {plan.from_step + 1}" if plan.from_step else ""
    how = f"{plan.mode.value}{live_boundaries(plan, own_tools=own_tools)}{forked}"
    tail = f"{how}, level {TITLES[Level(rerun.level)]}, {population}"
    if plan.self_test and same is not None and same.n:
        return f"Self-test {'failed: it did not diverge' if same.k else 'passed: it diverged, as it must'}; {tail}."
    rate = bad if bad is not None else same
    if rate is None or not rate.n:
        return f"No attempt has ended that counts; {tail}."
    interval = f"95 % CI {100 * rate.low:.0f}–{100 * rate.high:.0f} %"
    if bad is not None and rerun.regression is not None:
        what = Predicate.from_json(rerun.regression.predicate).sentence
        # a predicate looks at decisions, at no level of comparison
        return f"{rate.k}/{rate.n} ({interval}): {what}; {how}, {population}."
    if plan.mode is Mode.RECORDED:
        complete = "The record is complete: served from it alone, the harness went the same way"
        return f"{complete if rate.k else 'The harness left the record'}; {tail}."
    every = "Went as the parent every time" if rate.n > 1 else "Went as the parent"
    word = {0: "Never went as the parent", rate.n: every}.get(rate.k, "Intermittent")
    return f"{word}, {rate.k}/{rate.n} ({interval}), {tail}."


def agreeing(same: Rate | None, groups: Sequence[int]) -> str:
    """Say beside how many went as the parent how many agree with each other; nothing where all went as it did."""
    if same is None or same.n < 2 or same.k == same.n or sum(groups) != same.n:
        return ""
    if groups[0] == 1:
        return f" No two of the {same.n} agree with each other."
    return f" {groups[0] if groups[0] < same.n else 'All'} of the {same.n} agree with each other."


def proof(counts: Mapping[str, int]) -> str:
    """Say what attempts themselves did, together, which proves a live rerun live; empty where nothing was counted."""
    if not counts:
        return ""

    def said(name: str, what: str) -> str:
        number = counts.get(name, 0)
        return f"{number:,} {what}{'' if number == 1 else 's'}"

    answers = f"{counts.get('answers', 0):,} answered with {said('output_tokens', 'token')}"
    served = f"{counts.get('served', 0):,} served from the record"
    return f"{said('requests', 'request')} sent, {answers}; {said('commands', 'command')} run; {served}"


def so_far(sentence: str, left: int, attempts: int) -> str:
    """Say beside a finding how many attempts are still to come."""
    if not left:
        return sentence
    if left == attempts:
        return sentence.replace("No attempt has ended that counts", "No attempt has ended yet")
    return f"{sentence} {left} of {attempts} attempts {'is' if left == 1 else 'are'} still to come."


def live_boundaries(plan: RerunPlan, *, own_tools: bool) -> str:
    """Name what a hybrid rerun executed anew; all else is equal to the record by construction."""
    if plan.mode is not Mode.HYBRID:
        return ""
    live = sorted(name for name, switch in plan.switches.items() if switch is Switch.LIVE)
    live += ["the agent's own tools"] if own_tools else []
    failing = sorted(name for name, switch in plan.switches.items() if switch is Switch.FAIL)
    beside = f"; failing: {', '.join(failing)}" if failing else ""
    return f" (live: {', '.join(live) or 'nothing'}{beside})"
