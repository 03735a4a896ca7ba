"""Filters of a list, declared once as the fields of a dataclass: read from a query string, written to it, applied."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from harnesslab.core.errors import InvalidValue
from harnesslab.store.text import storable

LONGEST = 1000
"""Characters of a filter's value; SQLite's LIKE gives up on very long ones."""
_Rows = TypeVar("_Rows", bound=QuerySet[Any])
_KEY = "filter"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What the value of one field may be, and the rows it leaves."""

    where: Callable[[str], Q] | None
    """None for what filters nothing, such as a sort, or what the list's own class applies."""
    choices: Collection[str] = ()
    longest: int = LONGEST
    column: str = ""
    """Where the values are, for a filter by a column's whole value."""
    verbatim: bool = False
    """Whether blanks around a value are part of it, as in a name."""


def exact(column: str, choices: Collection[str] = (), **also: Q) -> str:
    """Declare a filter by a column's whole value; `also` names further values with what they mean."""
    allowed = (*choices, *also) if choices else ()
    named = _Rule(lambda value: also.get(value, Q(**{column: value})), allowed, column=column, verbatim=not allowed)
    return _declared(named)


def number(column: str) -> str:
    """Declare a filter by a number: `8`, `8..20`, `8..` or `..20`, ends included; unknown numbers never pass."""
    return _declared(_Rule(lambda value: _between(column, value)))


def meaning(
    where: Callable[[str], Q], choices: Collection[str] = (), longest: int = LONGEST, *, verbatim: bool = False
) -> str:
    """Declare a filter by a condition of its own; blanks around a value that is `verbatim` are part of it."""
    return _declared(_Rule(where, choices, longest, verbatim=verbatim))


def setting(default: str = "", choices: Collection[str] = ()) -> str:
    """Declare what the list is shown by, such as its sort: no filter, and no chip."""
    return _declared(_Rule(None, choices), default)


def _declared(rule: _Rule, default: str = "") -> str:
    # a dataclass's field stands where its value will be, which the type says
    declared: Any = field(default=default, metadata={_KEY: rule})
    value: str = declared
    return value


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filters of a list; an empty one filters nothing."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Read filters from a query string's values; raises `InvalidValue` for a value that can't be one."""
        values = {}
        for each in fields(cls):
            text, rule = str(query.get(each.name, "")), _rule(each)
            value = (text if rule.verbatim else text.strip()) or str(each.default)
            if storable(value) != value or len(value) > rule.longest:
                what = f"no filter is longer than {rule.longest} characters or holds a NUL or half a character"
                raise InvalidValue(what, where=each.name)
            if value and rule.choices and value not in rule.choices:
                raise InvalidValue(f"no such {each.name}: {value}", hint=f"one of {', '.join(rule.choices)}")
            values[each.name] = value
        return cls(**values)

    @classmethod
    def columns(cls) -> dict[str, str]:
        """Return the column of each filter by a whole value."""
        return {each.name: _rule(each).column for each in fields(cls) if _rule(each).column}

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """Return the values of each filter that has a fixed number of them."""
        rules = ((each.name, _rule(each)) for each in fields(cls))
        return {name: tuple(map(str, rule.choices)) for name, rule in rules if rule.column and rule.choices}

    @property
    def active(self) -> list[tuple[str, str]]:
        """The filters that are set, in order, for chips."""
        names = (each.name for each in fields(self) if _rule(each).where is not None)
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]

    def url(self, **changes: str) -> str:
        """Return the query string of these filters with changes; defaults are left out."""
        changed = replace(self, **changes)
        pairs = [(each.name, getattr(changed, each.name), each.default) for each in fields(changed)]
        return urlencode([(name, value) for name, value, default in pairs if value and value != default])

    def without(self, name: str) -> Self:
        """Return these filters with one of them unset."""
        return replace(self, **{name: ""}) if name in {each.name for each in fields(self)} else self

    def apply(self, rows: _Rows) -> _Rows:
        """Return the rows that pass; raises `InvalidValue` for a value that can't be read."""
        for each in fields(self):
            where, value = _rule(each).where, getattr(self, each.name)
            if where is not None and value:
                try:
                    rows = rows.filter(where(value))
                except InvalidValue as error:
                    raise InvalidValue(error.what, where=each.name, hint=error.hint) from None
        return rows


def _rule(each: Any) -> _Rule:
    rule: _Rule = each.metadata[_KEY]
    return rule


def _between(column: str, value: str) -> Q:
    low, dots, high = value.partition("..")
    ends = [finite(end) if end else None for end in (low, high if dots else low)]
    if value == ".." or any(end is None for end, text in zip(ends, (low, high if dots else low), strict=True) if text):
        raise InvalidValue(f"{value[:80]!r} is no number", hint="8, 8..20, 8.. or ..20")
    names = (f"{column}__gte", f"{column}__lte")
    between = Q(**{name: end for name, end in zip(names, ends, strict=True) if end is not None})
    # an end beyond all integers filters nothing, which would let unknown numbers pass
    return between & Q(**{f"{column}__isnull": False})


def finite(text: str) -> float | None:
    """Return the finite number that a text is, or None."""
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    return number if math.isfinite(number) else None
