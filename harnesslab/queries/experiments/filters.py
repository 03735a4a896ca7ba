"""What the list of experiments shows: filters and position, all of it from and to the URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.experiments import ExperimentKind, Verdict
from harnesslab.core.natural import natural
from harnesslab.store.models import Experiment
from harnesslab.store.models.experiments import ExperimentQuerySet

LONGEST = 1000
UNDECIDED = "none"
"""The value of the filter `decision` for experiments of which nothing was decided."""
CHOICES: dict[str, tuple[str, ...]] = {"kind": tuple(ExperimentKind), "decision": (*Verdict, UNDECIDED)}
COLUMNS = {"project": "project__name", "kind": "kind", "decision": "verdict"}


@dataclass(frozen=True, slots=True)
class ExperimentFilter:
    """The filters of the list; an empty one filters nothing."""

    project: str = ""
    kind: str = ""
    decision: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ExperimentFilter:
        """Read filters from a query string's values; raises `InvalidValue` for a value that can't be one."""
        values = {field.name: str(query.get(field.name, "")).strip() for field in fields(cls)}
        for name, value in values.items():
            if "\x00" in value or len(value) > LONGEST:
                raise InvalidValue(f"no filter is longer than {LONGEST} characters or holds a NUL", where=name)
        for name, allowed in CHOICES.items():
            if values[name] and values[name] not in allowed:
                raise InvalidValue(f"no such {name}: {values[name]}", hint=f"one of {', '.join(allowed)}")
        return cls(**values)

    def url(self, **changes: str) -> str:
        """Return the query string of these filters with changes."""
        changed = replace(self, **changes)
        pairs = [(field.name, getattr(changed, field.name)) for field in fields(changed)]
        return urlencode([(name, value) for name, value in pairs if value])

    def apply(self, rows: ExperimentQuerySet) -> ExperimentQuerySet:
        """Return the experiments that pass."""
        for name, column in COLUMNS.items():
            value = getattr(self, name)
            if value:
                rows = rows.filter(**{column: "" if (name, value) == ("decision", UNDECIDED) else value})
        return rows


def newest_first(rows: ExperimentQuerySet, after: str = "") -> ExperimentQuerySet:
    """Order experiments by when they began, or came here; start after a cursor, which is `time~id` of a row."""
    rows = rows.annotate(since=Coalesce(F("started_at"), F("created_at"))).order_by("-since", "-pk")
    if not after:
        return rows
    stamp, _, ending = after.rpartition("~")
    last = natural(ending)
    try:
        since = datetime.fromisoformat(stamp)
    except ValueError:
        since = None
    if last is None or since is None or since.tzinfo is None:
        raise InvalidValue(f"{after[:80]!r} is no position in the list", where="after")
    return rows.filter(Q(since__lt=since) | Q(since=since, pk__lt=last))


def cursor(row: Experiment) -> str:
    """Return the cursor of a row."""
    return f"{(row.started_at or row.created_at).isoformat()}~{row.pk}"
