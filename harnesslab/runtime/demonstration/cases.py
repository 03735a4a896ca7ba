"""The demonstration's tasks: what is asked, the files at the start, what counts as solved, and the model's table.

A table row is a command with the features that speak for it: a prior, and what the transcript adds. `after` says
for which situation a row holds: the first turn, after a failure, or after a success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SUBMIT = "submit"


@dataclass(frozen=True, slots=True)
class DemonstrationCase:
    """One task."""

    name: str
    instruction: str
    files: Mapping[str, str]
    expected: Mapping[str, str]
    """Files that must be there at the end, with their content."""
    first: Mapping[str, tuple[float, ...]]
    """The model's table in the first turn."""
    repair: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Its table after a command failed or the harness reminded it."""
    look: str = ""
    """A command that it likes to run before it submits."""


NAMES = "mallory\nbob\nalice\n"
CASES: tuple[DemonstrationCase, ...] = (
    DemonstrationCase(
        "sort-names",
        "Sort names.txt into out.txt.",
        {"names.txt": NAMES},
        {"out.txt": "alice\nbob\nmallory\n"},
        {"sort names.txt > out.txt": (1.0, 0.6), "sort names.txt": (1.0, 0.4), "cat names.txt > out.txt": (0.5,)},
        {"sort names.txt > out.txt": (2.0,)},
        "cat out.txt",
    ),
    DemonstrationCase(
        "count-lines",
        "Write the number of lines of names.txt into count.txt.",
        {"names.txt": NAMES},
        {"count.txt": "3\n"},
        {"wc -l names.txt > count.txt": (1.2,), "wc -l < names.txt > count.txt": (1.0,), "grep -c name": (0.2,)},
        {"wc -l < names.txt > count.txt": (2.0,)},
        "cat count.txt",
    ),
    DemonstrationCase(
        "copy-file",
        "Copy a.txt to b.txt.",
        {"a.txt": "one\n"},
        {"a.txt": "one\n", "b.txt": "one\n"},
        {"cp a.txt b.txt": (2.0,), "mv a.txt b.txt": (0.8,)},
        {"cp b.txt a.txt": (2.0,)},
        "ls",
    ),
    DemonstrationCase(
        "rename-file",
        "Rename draft.txt to final.txt.",
        {"draft.txt": "text\n"},
        {"final.txt": "text\n"},
        {"mv draft.txt final.txt": (1.5,), "cp draft.txt final.txt": (0.5,), "mv draft final": (0.9,)},
        {"mv draft.txt final.txt": (2.0,)},
        "ls -l",
    ),
    DemonstrationCase(
        "make-folder",
        "Make the folder logs with an empty file run.log in it.",
        {},
        {"logs/run.log": ""},
        {"touch logs/run.log": (1.2,), "mkdir logs": (1.0,), "mkdir logs && touch logs/run.log": (1.1,)},
        {"mkdir -p logs && touch logs/run.log": (2.0,)},
        "ls -l logs",
    ),
    DemonstrationCase(
        "scratch-file",
        "Make a temporary file, then write done into status.txt.",
        {},
        {"status.txt": "done\n"},
        {"mktemp && echo done > status.txt": (2.0,), "mktemp": (0.6,)},
        {"echo done > status.txt": (2.0,)},
        "cat status.txt",
    ),
    DemonstrationCase(
        "stamp-report",
        "Print the time, then write ok into report.txt.",
        {},
        {"report.txt": "ok\n"},
        {"date && echo ok > report.txt": (2.0,), "date > report.txt": (0.4,)},
        {"echo ok > report.txt": (2.0,)},
        "cat report.txt",
    ),
    DemonstrationCase(
        "near-tie",
        "Write the first line of names.txt into first.txt.",
        {"names.txt": NAMES},
        {"first.txt": "mallory\n"},
        # the two sums are equal in exact arithmetic; in 32 bits the order of addition decides
        {
            "head -n 1 names.txt > first.txt": (0.05, 0.31, 0.6, 0.18, 1000.0),
            "sed -n 1p names.txt > first.txt": (1000.0, 0.18, 0.6, 0.31, 0.05),
        },
        {"head -n 1 names.txt > first.txt": (2.0,)},
        "cat first.txt",
    ),
)
