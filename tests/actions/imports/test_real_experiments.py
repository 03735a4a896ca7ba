"""A genuine experiments tree and genuine matrices: what is stored equals what their files and summaries state."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harnesslab.actions.imports.importing import import_units
from harnesslab.core.deciding.promotion import StrictPareto, judge
from harnesslab.core.deciding.secondary import GENERIC
from harnesslab.core.measuring.cells import by_case
from harnesslab.core.measuring.matrix import markdown, percent
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.training.story import Turn
from harnesslab.formats.discovery import discover
from harnesslab.queries.experiments.cells import cells_of
from harnesslab.queries.experiments.certificates import certificates
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.queries.experiments.listing import ExperimentRow, all_experiments
from harnesslab.queries.experiments.matrices import matrices
from harnesslab.queries.stories.story import story
from harnesslab.queries.stories.words import headline
from harnesslab.store.models import Experiment, Memo
from harnesslab.store.text import thawed

TRACES = Path(__file__).parents[3].parent / "shared" / "traces"
TREE = TRACES / "harness-training" / "experiments"
MATRICES = TRACES / "harness-matrix"
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not TRACES.exists(), reason="the real traces are not beside this checkout"),
]


def test_the_experiments_tree_is_stored_as_its_files_and_its_account_state() -> None:
    list(import_units(discover([TREE])))
    rows = all_experiments(ExperimentFilter())
    assert len(rows) == 22
    compare_runs(rows)
    compare_totals(rows)
    compare_story()
    compare_decisions()


def compare_decisions() -> None:
    """Decide every candidate anew from the stored rollouts: our criterion says what the source's said, to the value."""
    criterion = StrictPareto(GENERIC, rule=1)
    decided = Experiment.objects.exclude(verdict="").select_related("baseline")
    assert decided.count() == 13
    for row in decided:
        assert row.baseline is not None
        sides = [by_case(cells_of([each.pk], anatomies=True)[each.pk]) for each in (row.baseline, row)]
        told = json.loads(json.dumps(judge(criterion, *sides).to_json()))
        stated = thawed(row.decision)
        assert isinstance(stated, dict)
        for name in ("outcome", "reason", "criterion"):
            assert told[name] == stated[name], row.name
        for name in ("candidate_solved", "baseline_solved", "new_solves", "regressions", "invalid_infra_tasks"):
            assert told.get(name, []) == stated[name], (row.name, name)
        values = ("name", "baseline_value", "candidate_value", "outcome")
        rewards = [{name: each[name] for name in values} for each in told.get("secondary_rewards", [])]
        assert rewards == [{name: each[name] for name in values} for each in stated["secondary_rewards"]], row.name


def compare_runs(rows: list[ExperimentRow]) -> None:
    """Compare every run with its own files and its row of the index."""
    index = {row["experiment_id"]: row for row in map(json.loads, (TREE / "runs.jsonl").read_text().splitlines())}
    found = {row.external_id: row for row in rows}
    for folder in sorted(TREE.glob("exp-*")):
        stated, row = json.loads((folder / "experiment.json").read_text()), found[folder.name]
        decision, tasks = stated["decision"] or {}, stated["tasks"]
        assert (row.kind, row.commit, row.baseline) == (
            stated["kind"],
            stated["git_commit_hash"],
            stated["baseline_experiment_id"],
        )
        assert (row.decision, row.reason) == (decision.get("outcome"), decision.get("reason"))
        solved = {name for name, task in tasks.items() if task and task["failure_mode"] == "solved"}
        assert (row.solved, row.total) == (len(solved), len(tasks)), folder.name
        certified = stated["determinism_certification"] or {}
        assert row.certification == {case: said["verdict"] for case, said in certified.items()}
        assert row.indexed == (folder.name in index)
        if row.indexed:
            assert (row.identity, row.solved) == (
                index[folder.name]["measurement_identity_digest"],
                index[folder.name]["solved"],
            )
        if decision:
            assert row.gained == len(decision["new_solves"]), folder.name
            assert row.lost == len(decision["regressions"]), folder.name
            assert solved == set(decision["candidate_solved"])


def compare_story() -> None:
    """Compare the story with the account: five baselines were measured, four of them again after a promotion."""
    found = story(Experiment.objects.values_list("project", flat=True).distinct().get())
    assert headline(found) == (
        "14 candidates took the baseline from 0/11 to 6/11 cases solved; "
        "4 promoted, 7 rejected, 2 not measurable, 1 without a decision."
    )
    assert Counter(step.turn for step in found.steps) == {Turn.START: 1, Turn.PROMOTION: 4, Turn.AGAIN: 4}
    assert (len(found.common), sum(found.left_out.values()), found.excluded) == (9, 3, {"noisy-banner": "forked"})
    fork = certificates(Experiment.objects.get(name__endswith="121428-222857"))[0].fork
    assert fork is not None
    assert (fork.command, fork.place) == ("rm b.txt", 1)
    assert {line.kind for line in fork.changes} == {"place", "removed", "added"}


def compare_totals(rows: list[ExperimentRow]) -> None:
    """Compare the totals with those of the account of the run."""
    listed = [row for row in rows if row.indexed]
    assert Counter(row.kind for row in listed) == {"baseline": 9, "candidate": 10}
    assert Counter(row.decision for row in listed) == {"promoted": 4, "rejected": 7, "invalid_infra": 2, None: 6}
    assert {(row.kind, row.decision) for row in rows if not row.indexed} == {(None, None)}
    assert {row.kind for row in rows if row.decision == "promoted"} == {"baseline"}
    facts: dict[str, Any] = {row.name: thawed(row.facts) for row in Experiment.objects.all()}
    assert sum(bool(said.get("crash_reason")) for said in facts.values()) == 2
    inherited = {name[-6:]: said["inherited_forks"] for name, said in facts.items() if said.get("inherited_forks")}
    assert inherited == {"345230": ["noisy-banner"], "016508": ["noisy-banner"]}
    outcomes = Counter(cell.outcome for cells in cells_of([row.id for row in rows]).values() for cell in cells)
    assert outcomes.pop(Outcome.NOT_RUN) == 16
    assert outcomes == {
        Outcome.SOLVED: 66,
        Outcome.STEP_CAP: 112,
        Outcome.FAILED_VERIFICATION: 16,
        Outcome.VERIFY_TIMEOUT: 4,
        Outcome.INFRA_ERROR: 4,
        Outcome.CRASH: 2,
    }
    account = dict(re.findall(r"(\d{6}-\d{6}) \| \w+ \| (\d+/\d+)", (TREE.parent / "RUN.md").read_text()))
    assert len(account) == 19
    assert account == {row.external_id[13:]: f"{row.solved}/{row.total}" for row in listed}
    assert Memo.objects.get().after_id == next(row.id for row in rows if row.external_id.endswith("549795"))


def tables(text: str) -> list[list[str]]:
    """Return the rows of a Markdown text's tables, whatever space is around their parts."""
    return [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.startswith("|")]


def test_the_matrices_add_up_to_their_published_summaries() -> None:
    list(import_units(discover([MATRICES / "*.results.json"])))
    found = matrices()
    assert len(found) == 3
    for summary in sorted(MATRICES.glob("*.summary.md")):
        results, _, _ = summary.read_text().partition("## Protocol version stamps")
        assert tables(markdown(found[summary.name[7:22]])) == tables(results), summary.name
    listed = {
        row[1][1:16]: row[2:10] for row in tables((MATRICES / "agenta_MANIFEST.md").read_text()) if row[1][:1] == "["
    }
    for name, matrix in found.items():
        total = matrix.total
        assert listed[name] == [
            str(len(matrix.cells)),
            str(len(matrix.scenarios)),
            str(total.trials),
            percent(total.rate(total.one_shot)),
            percent(total.rate(total.eventual)),
            str(total.hard_fails),
            str(total.skipped),
            f"${total.cost:.2f}",
        ]
        score = json.loads((MATRICES / f"agenta_{name}.results.json").read_text())["score"]
        assert (total.without_harness, total.measured, total.tokens) == (
            score["one_shot_excl_harness"],
            score["measured"],
            score["tokens"],
        )
