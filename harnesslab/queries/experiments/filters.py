"""What the list of experiments shows: filters and position, all of it from and to the URL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from harnesslab.core.errors import InvalidValue
from harnesslab.core.measuring.experiments import ExperimentKind, Verdict
from harnesslab.core.natural import natural
from harnesslab.queries.list_filters import ListFilter, exact
from harnesslab.store.models import Experiment
from harnesslab.store.models.experiments import ExperimentQuerySet

UNDECIDED = "none"
"""The value of the filter `decision` for experiments of which nothing was decided."""


@dataclass(frozen=True, slots=True)
class ExperimentFilter(ListFilter):
    """The filters of the list of experiments."""

    project: str = exact("project__name")
    kind: str = exact("kind", tuple(ExperimentKind))
    decision: str = exact("verdict", tuple(Verdict), **{UNDECIDED: Q(verdict="")})


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
