"""What a list shows: filters, sort and position, all of it from and to the URL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import urlencode

from django.db.models import BinaryField, F, Q, QuerySet
from django.db.models.functions import Substr

from harnesslab.core.contracts.comparators import WIDTH
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.efficiency.spending import Score
from harnesslab.core.errors import InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import UNCOUNTED, Origin, Outcome, Replayability
from harnesslab.store.models import Rollout, StoredPath
from harnesslab.store.models.events import MAX_EVENTS

SORTS: dict[str, tuple[str, bool]] = {
    "newest": ("id", True),
    "oldest": ("id", False),
    "most-steps": ("steps", True),
    "fewest-steps": ("steps", False),
    "most-tokens": ("output_tokens", True),
    "longest": ("seconds", True),
}
"""Sort names with their column and whether it descends."""
CHOICES: dict[str, tuple[str, ...]] = {
    "outcome": tuple(Outcome),
    "origin": tuple(Origin),
    "mode": ("recorded", "live", "hybrid"),
    "grade": tuple(Replayability),
}
MOST_IDS = 200
"""Rollouts that a list can be narrowed to by id."""
LONGEST = 1000
"""Characters of a filter's value; SQLite's LIKE gives up on very long ones."""
COLUMNS = {
    "project": "project__name",
    "panel": "case__panel__name",
    "case": "case__name",
    "experiment": "experiment__name",
    "model": "model",
    "engine": "engine",
    "harness": "harness",
    "revision": "revision",
    "outcome": "outcome",
    "origin": "origin",
    "mode": "mode",
    "grade": "grade",
}
_SCORED = {
    Score.SOLVED: Q(outcome=Outcome.SOLVED),
    Score.FAILED: ~Q(outcome__in=[Outcome.SOLVED, *UNCOUNTED]),
    Score.UNSCORED: Q(outcome__in=UNCOUNTED),
}


@dataclass(frozen=True, slots=True)
class RolloutFilter:
    """The filters of the rollouts list; an empty one filters nothing."""

    project: str = ""
    panel: str = ""
    case: str = ""
    experiment: str = ""
    tag: str = ""
    model: str = ""
    engine: str = ""
    harness: str = ""
    revision: str = ""
    outcome: str = ""
    origin: str = ""
    mode: str = ""
    grade: str = ""
    q: str = ""
    prefix: str = ""
    """`ID@N`: the same case, and the same as rollout ID in its first N counted events."""
    manifest: str = ""
    score: str = ""
    """Rollouts of no rerun that solved, failed or are no sample, as rates count them; see `core.spending.Score`."""
    ids: str = ""
    """These alone, such as `12.15.40`."""
    sort: str = "newest"
    by: str = ""
    """`case` groups the list."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> RolloutFilter:
        """Read filters from a query string's values; raises `InvalidValue` for a value that can't be one."""
        values = {field.name: str(query.get(field.name, "")).strip() for field in fields(cls)}
        for name, value in values.items():
            if "\x00" in value or (len(value) > LONGEST and name != "ids"):
                raise InvalidValue(f"no filter is longer than {LONGEST} characters or holds a NUL", where=name)
        values["sort"] = values["sort"] or "newest"
        if values["sort"] not in SORTS:
            raise InvalidValue(f"no such sort: {values['sort']}", hint=f"one of {', '.join(SORTS)}")
        for name, allowed in CHOICES.items():
            if values[name] and values[name] not in allowed:
                raise InvalidValue(f"no such {name}: {values[name]}", hint=f"one of {', '.join(allowed)}")
        if values["score"] and values["score"] not in tuple(Score):
            raise InvalidValue(f"no such score: {values['score']}", hint=f"one of {', '.join(Score)}")
        return cls(**values)

    @property
    def active(self) -> list[tuple[str, str]]:
        """The filters that are set, in order, for chips."""
        shown = (field.name for field in fields(self) if field.name not in ("sort", "by"))
        return [(name, getattr(self, name)) for name in shown if getattr(self, name)]

    def url(self, **changes: str) -> str:
        """Return the query string of these filters with changes; defaults are left out."""
        changed = replace(self, **changes)
        pairs = [(field.name, getattr(changed, field.name)) for field in fields(changed)]
        return urlencode([(name, value) for name, value in pairs if value and (name, value) != ("sort", "newest")])

    def without(self, name: str) -> RolloutFilter:
        """Return these filters with one of them unset."""
        return replace(self, **{name: ""}) if name in {field.name for field in fields(self)} else self

    def apply(self, rows: QuerySet[Rollout]) -> QuerySet[Rollout]:
        """Return the rollouts that pass."""
        for name, column in COLUMNS.items():
            value = getattr(self, name)
            if value:
                rows = rows.filter(**{column: value})
        if self.tag:
            # a tag is a JSON string in a list: its quotes keep `a` from matching `ab`
            rows = rows.filter(tags__icontains=f'"{self.tag}"')
        if self.manifest:
            rows = rows.filter(manifest__digest__startswith=self.manifest)
        if self.score:
            rows = rows.filter(_SCORED[Score(self.score)], mode="")
        if self.ids:
            rows = rows.filter(pk__in=self._ids())
        if self.q:
            rows = rows.filter(search__contains=self.q.lower())
        return rows.filter(self._prefix()) if self.prefix else rows

    def _ids(self) -> list[int]:
        found = [natural(part) for part in self.ids.split(".")[: MOST_IDS + 1]]
        if len(found) > MOST_IDS or any(number is None for number in found):
            raise InvalidValue("no list of rollouts", where="ids", hint=f"at most {MOST_IDS}, such as 12.15.40")
        return [number for number in found if number is not None]

    def _prefix(self) -> Q:
        first, _, counted = self.prefix.partition("@")
        rollout, count = natural(first), natural(counted)
        if rollout is None or not count or count > MAX_EVENTS:
            raise InvalidValue(f"{self.prefix!r} is no prefix", hint="ID@N, such as 12@8")
        paths = StoredPath.objects.filter(contract=RAW.key)
        start = (count - 1) * WIDTH + 1
        own = paths.filter(rollout_id=rollout).values_list("path", flat=True).first()
        wanted = bytes(own or b"")[start - 1 : start - 1 + WIDTH]
        if not wanted:
            return Q(pk__in=())
        case = Rollout.objects.filter(pk=rollout).values("case_id")
        same = (
            paths.filter(rollout__case_id__in=case)
            .annotate(at=Substr("path", start, WIDTH, output_field=BinaryField()))
            .filter(at=wanted)
            .values("rollout_id")
        )
        return Q(pk__in=same)


def ordered(rows: QuerySet[Rollout], sort: str, after: str) -> QuerySet[Rollout]:
    """Order rollouts and start after a cursor, which is the last row's sort value and id as `value~id`."""
    column, descends = SORTS[sort]
    direction = F(column).desc(nulls_last=True) if descends else F(column).asc(nulls_last=True)
    rows = rows.order_by(direction) if column == "id" else rows.order_by(direction, "-id")
    if not after:
        return rows
    value, _, ending = after.rpartition("~")
    last = natural(ending)
    if last is None:
        raise InvalidValue(f"{after[:80]!r} is no position in the list", where="after")
    below = Q(id__lt=last)
    if column == "id":
        return rows.filter(below if descends else Q(id__gt=last))
    if value == "":
        return rows.filter(Q(**{f"{column}__isnull": True}) & below)
    number = _finite(value)
    if number is None:
        raise InvalidValue(f"{after[:80]!r} is no position in the list", where="after")
    further = Q(**{f"{column}__{'lt' if descends else 'gt'}": number}) | Q(**{f"{column}__isnull": True})
    return rows.filter(further | (Q(**{column: number}) & below))


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def cursor(row: Rollout, sort: str) -> str:
    """Return the cursor of a row."""
    column, _ = SORTS[sort]
    value = "" if column == "id" else getattr(row, column)
    return f"{'' if value is None else value}~{row.pk}"
