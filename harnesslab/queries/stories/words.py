"""The sentences of a story."""

from __future__ import annotations

from harnesslab.core.deciding.decision_reasons import listed
from harnesslab.core.training.story import Mark
from harnesslab.queries.stories.story import METRIC, Story, StoryRow

_FORKS = {"forked": "it forks", "no_chain": "its commands can't be run again"}
MARKS = {
    Mark.BASELINE: "baseline",
    Mark.UNCHANGED: "measured again unchanged",
    Mark.PROMOTED: "promoted",
    Mark.REJECTED: "rejected",
    Mark.INVALID: "not measurable",
    Mark.UNDECIDED: "without a decision",
    Mark.RUNNING: "running",
}
"""Marks in words."""
_COUNTED = (Mark.PROMOTED, Mark.REJECTED, Mark.INVALID, Mark.UNDECIDED, Mark.RUNNING)


def headline(story: Story) -> str:
    """Say what the candidates made of the baseline, after the project's name."""
    candidates = story.candidates
    if not story.rows:
        evals = len(story.evals)
        return (
            f"{_count(evals, 'evaluation')}, and no candidate was measured." if evals else "nothing was measured yet."
        )
    if not candidates:
        return f"{_count(len(story.rows), 'baseline measurement')}, and no candidate was measured yet."
    over = f" over {_count(story.epochs, 'iteration')}" if story.epochs else ""
    counts = [f"{story.counts[mark]} {MARKS[mark]}" for mark in _COUNTED if story.counts[mark]]
    return f"{_count(len(candidates), 'candidate')}{over} {_moved(story)}; {', '.join(counts)}."


def _moved(found: Story) -> str:
    name = f" in {found.by.removeprefix(METRIC)}" if found.by.startswith(METRIC) else ""
    if not found.steps:
        return "came without a baseline that has a number"
    rows = [found.rows[step.place] for step in found.steps]
    first, last = rows[0], rows[-1]
    if name:
        start, end = f"{first.value:,.6g}", f"{last.value:,.6g}"
        return f"took the baseline from {start} to {end}{name}" if first.id != last.id else f"left it at {end}{name}"
    if found.counts[Mark.PROMOTED]:
        said = f"took the baseline from {_score(first)} to {_score(last)} cases solved"
        moved = first.total != last.total and first.common is not None and last.common is not None
        common = f", on the {_count(len(found.common), 'case')} common to all from {first.common} to {last.common}"
        return said + (common if moved else "")
    return f"left the baseline at {_score(last)} cases solved"


def _score(row: StoryRow) -> str:
    """Write solved of all cases, where a source states how many there are."""
    solved = "–" if row.solved is None else f"{row.solved}"
    return solved if row.total is None else f"{solved}/{row.total}"


def excluded(story: Story) -> str:
    """Say which cases certification keeps out, and why; empty for none."""
    if not story.excluded:
        return ""
    if len(story.excluded) == 1:
        case, verdict = next(iter(story.excluded.items()))
        return f"One case ({case}) is excluded: {_FORKS.get(verdict, verdict)}."
    parts = [f"{case}, since {_FORKS.get(verdict, verdict)}" for case, verdict in story.excluded.items()]
    return f"{len(parts)} cases are excluded: {listed(parts)}."


def rests(story: Story) -> str:
    """Say how much the decisions rest on."""
    if not any(row.shared for row in story.candidates):
        return ""
    most = max(story.trials, default=1)
    trials = "one trial" if most == 1 else f"up to {most} trials"
    gate = {True: ", on an engine that is certified", False: ", on an engine that is not certified", None: ""}
    skipped = f" {_count(story.skipped, 'iteration')} measured no candidate." if story.skipped else ""
    words = {"unfinished": "unfinished run", "superseded attempt": "superseded attempt"}
    counts = [_count(count, words.get(why, why)) for why, count in sorted(story.left_out.items())]
    gone = f" {' and '.join(counts)} left out." if counts else ""
    return f"Decisions rest on {trials} a case{gate[story.gate]}.{skipped}{gone}"


def unchanged(story: Story) -> list[str]:
    """Say what each baseline that was measured again unchanged shows."""
    said = []
    for row in story.rows:
        if row.mark is Mark.UNCHANGED and row.shared:
            flipped = len(row.gained) + len(row.lost)
            names = f" ({listed([*row.gained, *row.lost])})" if flipped else ""
            said.append(f"Measured again unchanged: {flipped} of {row.shared} cases{names} flipped by nothing.")
    return said


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"
