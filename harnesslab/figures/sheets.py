"""Tables of numbers: what a figure shows, as a page's table, as CSV and as JSON, from one value."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `unit` says how its numbers are written: `%`, `s`, `x` for a factor, or empty for a count."""

    title: str
    unit: str = ""
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell: a value, why it is undefined, and the query of the rollouts behind it."""

    value: Value
    why: str = ""
    query: str = ""
    """Of the rollouts list, `#ID` for one rollout, or `@ID` for an experiment; empty for no link."""
    of: int | None = None
    """The denominator of a share."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with a name of its own on the page."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    note: str = ""
    """What the numbers are over."""
    empty: str = "Nothing to show."
    """What is said where there is no row."""
    rows_on_page: int = 40
    """Rows that a page shows; the CSV has them all."""

    def csv(self) -> str:
        """Return it as CSV that no spreadsheet takes for formulas; a denominator gets a column of its own."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        with_n = [any(row[place].of is not None for row in self.rows) for place in range(len(self.columns))]
        writer.writerow(
            safe(title)
            for column, also in zip(self.columns, with_n, strict=True)
            for title in ((column.title, f"{column.title}: of") if also else (column.title,))
        )
        for row in self.rows:
            writer.writerow(
                safe(value)
                for entry, also in zip(row, with_n, strict=True)
                for value in ((entry.value, entry.of) if also else (entry.value,))
            )
        return out.getvalue()


def safe(value: Value) -> Value:
    """Return a value as a cell: text that would run as a formula is quoted, what is undefined is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.replace("\x00", "␀")
        return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
    return value


def sheet_of(sheets: Sequence[Sheet], name: str) -> Sheet | None:
    """Return the sheet of a name."""
    return next((sheet for sheet in sheets if sheet.name == name), None)
