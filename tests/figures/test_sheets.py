"""Tables as CSV: every row, denominators apart, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io

import pytest

from harnesslab.figures.sheets import Column, Entry, Sheet, safe


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1"])
def test_text_that_would_run_as_a_formula_is_quoted(text: str) -> None:
    assert safe(text) == f"'{text}"


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    assert [safe(value) for value in ("case-1", -1.5, 0, None, "a\x00b")] == ["case-1", -1.5, 0, "", "a␀b"]


def test_a_denominator_has_a_column_of_its_own() -> None:
    rows = tuple((Entry(f"=case {number}"), Entry(0.25, of=4), Entry(None, "never")) for number in range(60))
    sheet = Sheet("t", "T", (Column("case", numeric=False), Column("rate", "%"), Column("x")), rows)
    read = list(csv.reader(io.StringIO(sheet.csv())))
    assert read[0] == ["case", "rate", "rate: of", "x"]
    assert read[1] == ["'=case 0", "0.25", "4", ""]
    assert len(read) == 61
