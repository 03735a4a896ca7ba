"""The tables of the efficiency page: each number with its denominator and the rollouts behind it."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.core.efficiency.factors import Levers, Ratio, View
from harnesslab.core.efficiency.spending import Score
from harnesslab.core.efficiency.survival import After
from harnesslab.figures.sheets import Column, Entry, Sheet, Value
from harnesslab.figures.survival import MOST_CASES
from harnesslab.queries.efficiency.words import PLAIN
from harnesslab.queries.experiments.sums import ExperimentSums

_WHO = Column("experiment", numeric=False)
_NO_LOSS = "No counted token went into a rollout that solved nothing."
_LOST = Column("of all that solved nothing", "%")


def sheets(sides: Sequence[ExperimentSums], moved: Sequence[Levers], view: View) -> list[Sheet]:
    """Return all tables."""
    return [
        _totals(sides),
        _identity(sides, view),
        *([_levers(sides, moved)] if moved else []),
        _spend(sides, view),
        _contributors(sides),
        _rates(sides),
        _repairs(sides),
        _survival(sides),
        _solves(sides),
        _tools(sides),
        _times(sides),
    ]


def _who(side: ExperimentSums) -> Entry:
    return Entry(side.title, query=side.query())


def _of(ratio: Ratio, query: str = "", *, with_n: bool = True) -> Entry:
    return Entry(ratio.value, ratio.why, query, ratio.bottom if with_n and not ratio.why else None)


def _totals(sides: Sequence[ExperimentSums]) -> Sheet:
    columns = ("rollouts", "solved", "not counted yet", "steps", "calls", "served", "input, uncached", "input, cached")
    more = ("output", "of it reasoning", "served input", "served output")
    last = Column("cost", "price")
    return Sheet(
        "totals",
        "What was spent",
        (_WHO, Column("model", numeric=False), *map(Column, (*columns, *more)), last),
        tuple(_total(side) for side in sides),
        "Served answers came from a cache or a record: shown, never billed. A dash is what no rollout states.",
    )


def _total(side: ExperimentSums) -> tuple[Entry, ...]:
    found, query = side.split, side.query()
    counts = (side.identity.steps, found.calls, found.served, found.uncached, found.cached, found.output)
    more = (found.reasoning, found.served_input, found.served_output)
    unstated = f"{found.unstated:,} calls state no tokens" if found.unstated else "no rollout states it"
    return (
        _who(side),
        Entry(", ".join(side.models)),
        Entry(side.identity.rollouts + len(side.identity.left_out), query=query),
        Entry(side.identity.solved, query=side.query(score=Score.SOLVED)),
        Entry(side.uncounted, query=query if side.uncounted else ""),
        *(Entry(value, "" if value is not None else unstated, query) for value in (*counts, *more)),
        Entry(side.cost.amount, side.cost.why, query),
    )


def _identity(sides: Sequence[ExperimentSums], view: View) -> Sheet:
    names = (f"{PLAIN[view.kind]} per solve", "tokens per call", "calls per step", "steps per solve")
    counts = ("tokens", "calls", "steps", "solves", "rollouts")
    rows = []
    for side in sides:
        found, query = side.identity, side.query()
        ratios = (found.per_solve, found.per_call, found.calls_per_step, found.steps_per_solve)
        sums = (found.tokens, found.calls, found.steps)
        left = side.behind(found.left_out)
        rows.append(
            (
                _who(side),
                *(_of(ratio, query, with_n=False) for ratio in ratios),
                *(Entry(value, query=query) for value in sums),
                Entry(found.solved, query=side.query(score=Score.SOLVED)),
                Entry(found.rollouts, query=query),
                Entry(len(found.left_out), query=left),
            )
        )
    columns = (*(Column(name, "x") for name in names), *map(Column, (*counts, "left out: tokens not stated")))
    return Sheet("identity", "Tokens per solve and its factors", (_WHO, *columns), tuple(rows))


def _levers(sides: Sequence[ExperimentSums], moved: Sequence[Levers]) -> Sheet:
    rows = []
    for side, found in zip(sides[1:], moved, strict=True):
        for lever in (*found.factors, found.total):
            a, b = _of(lever.a, sides[0].query(), with_n=False), _of(lever.b, side.query(), with_n=False)
            change = Entry(None if lever.change is None else lever.change, lever.why)
            rows.append((_who(side), Entry(lever.name), a, b, change, Entry(lever.log, lever.why)))
    columns = (Column("factor", numeric=False), Column("A", "x"), Column("here", "x"), Column("change", "±%"))
    note = "The log-ratios ln(here ÷ A) of the factors add up exactly to that of tokens per solve."
    gone = [side for side in sides if side.identity.per_solve.why]
    if gone:
        note += " Undefined: " + "; ".join(f"{side.letter}, {side.identity.per_solve.why}" for side in gone) + "."
    return Sheet("levers", "Levers against A", (_WHO, *columns, Column("log-ratio", "±")), tuple(rows), note)


def _spend(sides: Sequence[ExperimentSums], view: View) -> Sheet:
    rows = []
    for side in sides:
        total = sum(spent.tokens for spent in side.spending.groups.values())
        for group, spent in side.spending.groups.items():
            share = Ratio(spent.tokens, total, "" if total else "no tokens were spent")
            query = side.query(score=group)
            counts = (spent.tokens, spent.rollouts, spent.calls)
            rows.append((_who(side), Entry(group.value), *(Entry(n, query=query) for n in counts), _of(share, query)))
    columns = (Column("spent on", numeric=False), *map(Column, (PLAIN[view.kind], "rollouts", "calls")))
    note = "Useful share is that of solved rollouts. Unscored: crashed, interrupted, infrastructure, no verdict."
    return Sheet("spend", "Useful share and failed spend", (_WHO, *columns, Column("share", "%")), tuple(rows), note)


def _contributors(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        for item in side.spending.contributors:
            query = side.query(case=item.case)
            rows.append(
                (
                    _who(side),
                    Entry(item.case, query=query),
                    Entry(item.rollouts, query=query),
                    Entry(item.tokens, query=query),
                    _of(item.share, query),
                )
            )
    columns = (
        Column("case", numeric=False),
        Column("rollouts"),
        Column("tokens"),
        Column("of all that solved nothing", "%"),
    )
    return Sheet(
        "failed-cases", "The five cases that cost most without a solve", (_WHO, *columns), tuple(rows), empty=_NO_LOSS
    )


def _rates(sides: Sequence[ExperimentSums]) -> Sheet:
    names = ("first attempt valid", "fatal steps", "retries", "submit rate", "pass rate", "solve rate")
    rows = []
    for side in sides:
        found, submits, query = side.faults, side.submits, side.query()
        ratios = (found.first_valid, found.fatal, found.retries, submits.submitted, submits.passed)
        rows.append(
            (
                _who(side),
                *(_of(ratio, query) for ratio in ratios),
                _of(submits.solved, side.query(score=Score.SOLVED)),
                Entry(submits.unknown, query=query if submits.unknown else ""),
            )
        )
    note = (
        "Solve rate = submit rate × pass rate, over scored rollouts that say whether they submitted. A step is fatal "
        "when no answer was a valid action; retries are of all answers."
    )
    columns = (*(Column(name, "%") for name in names), Column("submit unknown"))
    return Sheet("rates", "Valid actions, submits and solves", (_WHO, *columns), tuple(rows), note)


def _repairs(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        for kind, repair in side.faults.repairs.items():
            where = side.faults.rollouts[kind]
            query = side.behind(where)
            rate = Ratio(repair.recovered, repair.times, "" if repair.times else "it never occurred")
            counts = (Entry(repair.times, query=query), Entry(len(where), query=query))
            rows.append((_who(side), Entry(kind), *counts, _of(rate, query)))
    columns = (Column("fault", numeric=False), Column("occurrences"), Column("in rollouts"), Column("recovered", "%"))
    note = "Recovered: a later attempt of the same step was accepted."
    return Sheet("repairs", "Repairs by kind of fault", (_WHO, *columns), tuple(rows), note, "No answer was rejected.")


def _survival(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        n = side.survival.rollouts
        for at in side.survival.after:
            share = Entry(at.running / n if n else None, of=n)
            counts = (Entry(at.steps), Entry(at.running))
            rows.append((_who(side), *counts, share, _solved_by(side, at), Entry(at.cut)))
    columns = (*map(Column, ("after steps", "still running")), Column("share", "%"), Column("solved by then"))
    note = "Cut off: ended by a cap of steps or time, so that they might have gone on."
    title = "Rollouts still running by step"
    return Sheet("survival", title, (_WHO, *columns, Column("cut off by then")), tuple(rows), note)


def _solved_by(side: ExperimentSums, at: After) -> Entry:
    return Entry(at.solved, query=side.behind([rollout for taken, rollout in side.solved_at if taken <= at.steps]))


def _solves(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        for item in side.solves:
            name = f"{item.first}–{item.last}" if item.last > item.first else f"{item.first}"
            behind = [rollout for taken, rollout in side.solved_at if item.first <= max(taken, 1) <= item.last]
            rows.append((_who(side), Entry(name), Entry(item.solved, query=side.behind(behind)), Entry(item.ended)))
    columns = (Column("step", numeric=False), Column("solved"), Column("rollouts that ended"))
    return Sheet("solves", "New solves by step", (_WHO, *columns), tuple(rows))


def _tools(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        for name, use in side.tools.items():
            query = side.behind(side.used.get(name, ()))
            untimed, unasked = "no call states its time", "no answer that asked for it states its tokens"
            tokens = Ratio(use.output_tokens, use.asked, "" if use.asked else unasked)
            seconds = Entry(use.seconds / use.timed, of=use.timed) if use.timed else Entry(None, untimed)
            failed: Value = use.failed
            rows.append((_who(side), Entry(name), Entry(use.calls, query=query), Entry(failed), _of(tokens), seconds))
    columns = (Column("tool", numeric=False), Column("calls"), Column("failed"), Column("output tokens per call", "x"))
    note = "Output tokens of a billed answer are shared evenly among the calls it asked for."
    return Sheet("tools", "Tokens and time by tool", (_WHO, *columns, Column("time per call", "s")), tuple(rows), note)


def _stated_time(seconds: float | None) -> Entry:
    return Entry(seconds, "no event states its time" if seconds is None else "")


def _times(sides: Sequence[ExperimentSums]) -> Sheet:
    rows = []
    for side in sides:
        for item in side.times:
            seconds = (item.model, item.waited, item.tool, item.verify)
            wall = Entry(item.wall, "" if item.wall else "no time budget is stated")
            unshared = "no event states its time" if item.wall else "no time budget is stated"
            share = Entry(item.share, "" if item.share is not None else unshared)
            case = Entry(item.case, query=f"#{item.rollout}")
            rows.append((_who(side), case, Entry(item.trial + 1), *map(_stated_time, seconds), wall, share))
    names = ("model", "waiting", "tools", "verify", "time budget")
    columns = (Column("case", numeric=False), Column("trial"), *(Column(name, "s") for name in names))
    last = Column("model time of budget", "%")
    note = f"Drawn are the {MOST_CASES} with the most model time, of {len(rows):,}." if len(rows) > MOST_CASES else ""
    return Sheet("model-time", "Model time against its budget", (_WHO, *columns, last), tuple(rows), note)
