"""Small real tasks in a shell for the reference harness: what is asked, the files, and how the work is judged."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser, Verifier

BUDGETS = Budgets(steps=6, wall=180.0, command=5.0, verify=20.0, output=96, context=2048)
FRUIT = "pear\napple\nfig\napple\n"
NUMBERS = "7\n3\n12\n"


def _case(
    name: str,
    instruction: str,
    tests: Mapping[str, str],
    files: Mapping[str, str] | None = None,
    user: SimulatedUser | None = None,
    setup: tuple[str, ...] = (),
    budgets: Budgets = BUDGETS,
) -> CaseDefinition:
    verifier = Verifier(tests=tests)
    return CaseDefinition(
        name, instruction, files or {}, setup, verifier=verifier, budgets=budgets, user=user, tags=("shell",)
    )


def _holds(file: str, text: str) -> dict[str, str]:
    return {f"{file} holds what was asked": f"[ \"$(cat {file})\" = '{text}' ]"}


SHELL_CASES: tuple[CaseDefinition, ...] = (
    _case("create-file", "Create a file named hello.txt that holds the word hello.", _holds("hello.txt", "hello")),
    _case("make-folder", "Make a folder named logs.", {"logs is a folder": "[ -d logs ]"}),
    _case("copy-file", "Copy a.txt to b.txt.", {"b.txt equals a.txt": "cmp a.txt b.txt"}, {"a.txt": "one\n"}),
    _case(
        "rename-file",
        "Rename draft.txt to final.txt.",
        {"final.txt is there": "[ -f final.txt ]", "draft.txt is gone": "[ ! -e draft.txt ]"},
        {"draft.txt": "text\n"},
    ),
    _case(
        "remove-file",
        "Remove the file old.txt and keep new.txt.",
        {"old.txt is gone": "[ ! -e old.txt ]", "new.txt is there": "[ -f new.txt ]"},
        {"old.txt": "old\n", "new.txt": "new\n"},
    ),
    _case(
        "count-lines",
        "Write the number of lines of fruit.txt into count.txt.",
        _holds("count.txt", "4"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "sort-lines",
        "Sort fruit.txt into sorted.txt.",
        _holds("sorted.txt", "apple\napple\nfig\npear"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "filter-lines",
        "Write the lines of fruit.txt that hold apple into apples.txt.",
        _holds("apples.txt", "apple\napple"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "replace-word",
        "Replace the word cat by dog in pets.txt.",
        _holds("pets.txt", "one dog\ntwo dogs"),
        {"pets.txt": "one cat\ntwo cats\n"},
    ),
    _case(
        "first-line",
        "Write the first line of fruit.txt into first.txt.",
        _holds("first.txt", "pear"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "last-line",
        "Write the last line of numbers.txt into last.txt.",
        _holds("last.txt", "12"),
        {"numbers.txt": NUMBERS},
    ),
    _case(
        "append-line",
        "Append the line done to notes.txt.",
        _holds("notes.txt", "begin\ndone"),
        {"notes.txt": "begin\n"},
    ),
    _case(
        "join-files",
        "Join a.txt and b.txt into all.txt, a first.",
        _holds("all.txt", "A\nB"),
        {"a.txt": "A\n", "b.txt": "B\n"},
    ),
    _case(
        "unique-lines",
        "Write the unique sorted lines of fruit.txt into unique.txt.",
        _holds("unique.txt", "apple\nfig\npear"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "upper-case",
        "Write fruit.txt in upper case into upper.txt.",
        _holds("upper.txt", "PEAR\nAPPLE\nFIG\nAPPLE"),
        {"fruit.txt": FRUIT},
    ),
    _case(
        "make-executable", "Make run.sh executable.", {"run.sh is executable": "[ -x run.sh ]"}, {"run.sh": "echo hi\n"}
    ),
)
"""The panel: sixteen cases that a small model solves some of."""

FORKING = _case(
    "session-note",
    "Write the word ready into note.txt.",
    _holds("note.txt", "ready"),
    setup=("touch session-$(cut -c1-8 /proc/sys/kernel/random/uuid)",),
)
"""Its environment makes a file with a name that nothing pins, so that certification finds it to fork."""
SLOW = _case(
    "slow-check",
    "Make a folder named backup.",
    {"backup is a folder": "sleep 30; [ -d backup ]"},
    budgets=msgspec.structs.replace(BUDGETS, verify=1.0),
)
"""Its check outlasts its time, so that its verdict can't be trusted."""
TRAINING_BUDGETS = msgspec.structs.replace(BUDGETS, steps=4, output=48)
TRAINING_CASES: tuple[CaseDefinition, ...] = (
    *(msgspec.structs.replace(case, budgets=TRAINING_BUDGETS) for case in SHELL_CASES),
    msgspec.structs.replace(FORKING, budgets=TRAINING_BUDGETS),
    msgspec.structs.replace(SLOW, budgets=msgspec.structs.replace(TRAINING_BUDGETS, verify=1.0)),
)
"""The panel of the small training: the sixteen, one that forks, and one whose check is too slow."""
UNPINNED = _case(
    "unpinned-report",
    "Create a file named report.txt that holds the word ok.",
    _holds("report.txt", "ok"),
)
"""Runs without pins: the harness looks at the time first, so that no two runs read the same."""
ASKED = _case(
    "asked-report",
    "Create a file named report.txt.",
    {"report.txt is there": "[ -f report.txt ]"},
    user=SimulatedUser(
        persona="You are a person who wants a small text file. Answer in one short sentence what it should say."
    ),
)
"""Its user is played by a model, so that another seed answers differently."""
