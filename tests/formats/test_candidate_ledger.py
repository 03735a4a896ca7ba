"""Ledgers: each row an experiment, decided only by what its words say, against the last row that was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.measuring.experiments import ExperimentKind, ExperimentRecord, Verdict
from harnesslab.formats import candidate_ledger
from harnesslab.formats.reading.inputs import InputFile, Report, Unit
from harnesslab.formats.registry import experiments, recognise
from tests.formats.making import file_unit

LEDGERS = Path(__file__).parents[2].parent / "shared" / "traces" / "candidate-ledger"
HEADING = "commit\tval_bpb\tstatus\tdescription\n"
CORRECTNESS = "experiment\ttag\tkernel_type\tcorrectness\tdescription\n"


def rows(text: str, name: str = "results.tsv", report: Report | None = None) -> list[ExperimentRecord]:
    found = recognise(file_unit(name, text))
    assert found.importer is candidate_ledger
    return list(experiments(found, report or Report()))


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("keep", Verdict.PROMOTED),
        ("KEEP", Verdict.PROMOTED),
        ("discard", Verdict.REJECTED),
        ("REVERT", Verdict.REJECTED),
        ("KILL", Verdict.REJECTED),
        ("crash", None),
        ("BLOCKED", None),
    ],
)
def test_only_words_that_decide_are_decisions(word: str, verdict: Verdict | None) -> None:
    (row,) = rows(f"{HEADING}abc\t1.5\t{word}\ttry it\n")
    assert (row.verdict, row.reason, row.decision) == (verdict, word.lower(), {"status": word})


def test_a_row_is_measured_against_the_last_one_that_was_kept() -> None:
    first, worse, better, last = rows(
        f"{HEADING}a1\t2.0\tkeep\tbaseline (default)\nb2\t2.1\tdiscard\tx\nc3\t1.9\tkeep\ty\nd4\t0\tcrash\tz\n"
    )
    assert (first.kind, first.baseline, first.parent_revision) == (ExperimentKind.BASELINE, "", "")
    assert (worse.kind, worse.baseline, worse.parent_revision) == (ExperimentKind.CANDIDATE, "a1", "a1")
    assert [row.baseline for row in (better, last)] == ["a1", "c3"]
    assert (worse.mechanism, worse.revision, worse.metrics) == ("x", "b2", {"val_bpb": "2.1"})


def test_a_commit_that_comes_again_is_a_second_experiment() -> None:
    names = [row.external_id for row in rows(f"{HEADING}a1\t2\tkeep\tx\na1\t2\tdiscard\ty\nb2\t1\tkeep\tz\n")]
    assert names == ["a1", "a1 #2", "b2"]


def test_rows_that_were_appended_change_no_name_before_them() -> None:
    text = f"{HEADING}a1\t2\tkeep\tx\nb2\t1\tkeep\tz\n"
    assert rows(f"{text}a1\t3\tdiscard\tw\n")[:2] == rows(text)


def test_correctness_says_neither_what_was_kept_nor_what_a_row_was_measured_against() -> None:
    base, passed, failed = rows(
        f"{CORRECTNESS}0\tbaseline\tmm\tPASS\tBaseline\n1\tswizzle\tmm\tPASS\tfaster\n0\tbaseline\tfused\tFAIL\tB\n",
        "kernels.tsv",
    )
    assert [row.external_id for row in (base, passed, failed)] == ["kernels 0", "kernels 1", "kernels 0 #2"]
    assert [row.verdict for row in (base, passed, failed)] == [None, None, None]
    assert (base.kind, passed.baseline, failed.reason) == (ExperimentKind.BASELINE, "", "fail")


def test_tabs_commas_quotes_and_odd_bytes_stay_in_the_description() -> None:
    said = 'a, "b"\tc \udcff'
    data = f"{HEADING}a1\t2\tkeep\t{said}\r\n".encode("utf-8", "surrogateescape")
    found = recognise(Unit("r.tsv", {"r.tsv": InputFile.of_bytes("r.tsv", data)}))
    assert [row.mechanism for row in experiments(found, Report())] == [said]


def test_a_row_without_its_decision_is_left_out_and_named() -> None:
    report = Report()
    assert len(rows(f"{HEADING}a1\t2\n\nb2\t1\tkeep\tz\n", report=report)) == 1
    assert [(note.where, note.why) for note in report.skipped] == [("line 2", "no commit or no status")]


@pytest.mark.skipif(not LEDGERS.exists(), reason="the real traces are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "count", "promoted", "rejected"),
    [
        ("TrainRTX5070_results.tsv", 69, 20, 42),
        ("autokernel5090_results.tsv", 126, 5, 35),
        ("autoresearch-mlx_results.tsv", 5, 4, 1),
    ],
)
def test_the_real_ledgers_have_every_row(name: str, count: int, promoted: int, rejected: int) -> None:
    data = (LEDGERS / name).read_bytes()
    found = list(experiments(recognise(Unit(name, {name: InputFile.of_bytes(name, data)})), Report()))
    verdicts = [row.verdict for row in found]
    assert (len(found), verdicts.count(Verdict.PROMOTED), verdicts.count(Verdict.REJECTED)) == (
        count,
        promoted,
        rejected,
    )
    assert len({row.external_id for row in found}) == count
    assert found[0].kind is ExperimentKind.BASELINE
