"""`harnesslab experiments`, as a person and as a script read it."""

from __future__ import annotations

import json

import pytest

from harnesslab.actions.experiments.sources import store_record
from harnesslab.actions.imports.importing import import_unit
from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from tests.cli.commands import run
from tests.formats.harness_matrix.test_harness_matrix import document, trial
from tests.formats.making import file_unit

pytestmark = pytest.mark.django_db


def experiments(*arguments: str) -> str:
    result = run("experiments", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_table_says_what_became_of_each() -> None:
    store_record(ExperimentRecord("base", kind=ExperimentKind.BASELINE, revision="a" * 40, solved=3, total=9))
    store_record(ExperimentRecord("next", baseline="base", verdict=Verdict.PROMOTED, reason="keep", solved=5, total=9))
    store_record(ExperimentRecord("gone", facts={"indexed": False}))
    heading, base, following, gone = experiments().splitlines()
    assert heading.split()[:2] == ["experiment", "kind"]
    assert base.split() == ["base", "baseline", "3/9", "–", "aaaaaaaa"]
    assert "5/9 +2 promoted · kept, as the ledger says" in " ".join(following.split())
    assert "unfinished" in gone  # it states no end


def test_it_filters_by_the_words_that_it_prints() -> None:
    store_record(ExperimentRecord("base", kind=ExperimentKind.BASELINE))
    store_record(ExperimentRecord("next", kind=ExperimentKind.CANDIDATE, baseline="base", verdict=Verdict.REJECTED))
    assert [row["external_id"] for row in json.loads(experiments("--kind", "baseline", "--json"))] == ["base"]
    assert [row["external_id"] for row in json.loads(experiments("--decision", "rejected", "--json"))] == ["next"]
    assert "[baseline|candidate|eval]" in experiments("--help")


def test_json_holds_what_the_source_states_and_null_where_it_states_nothing() -> None:
    store_record(ExperimentRecord("e", project="p", certification={"a": {"verdict": "no_chain"}}))
    store_record(ExperimentRecord("other", project="q"))
    (row,) = json.loads(experiments("--project", "p", "--json"))
    assert {name: row[name] for name in ("external_id", "kind", "decision", "reason", "solved", "commit")} == {
        "external_id": "e",
        "kind": None,
        "decision": None,
        "reason": None,
        "solved": None,
        "commit": None,
    }
    assert (row["certification"], row["indexed"], row["state"]) == ({"a": "no_chain"}, None, "imported")


def test_a_matrix_is_added_up_as_markdown_and_as_json() -> None:
    import_unit(file_unit("m.json", document(trial(1), trial(2, one_shot=False))), project="p")
    assert "| claude | 1/2 | 50% | 50% | 100% | $0.50 |" in experiments("--matrix", "--project", "p")
    found = json.loads(experiments("--matrix", "--json"))["20260101-000000"]
    assert (found["total"]["one_shot"], found["total"]["eventual_rate"], found["total"]["gap"]) == (1, 1.0, 0.5)
    assert "no matrix" in experiments("--matrix", "--project", "q")


def test_a_name_from_a_file_can_not_move_the_cursor() -> None:
    store_record(ExperimentRecord("e\x1b[2J", mechanism="two\nlines"))
    assert "\x1b" not in experiments()
    assert len(experiments().splitlines()) == 2


def test_without_experiments_it_says_what_brings_them() -> None:
    assert "harnesslab import" in experiments()
