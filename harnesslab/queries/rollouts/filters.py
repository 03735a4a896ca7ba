"""What a list shows: filters, sort and position, all of it from and to the URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import BinaryField, BooleanField, F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Substr

from harnesslab.core.contracts.comparators import WIDTH
from harnesslab.core.contracts.contract import RAW
from harnesslab.core.efficiency.spending import Score
from harnesslab.core.errors import InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import OWN_CRASHES, UNCOUNTED, Origin, Outcome, Replayability
from harnesslab.queries.list_filters import ListFilter, exact, finite, meaning, number, setting
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
MOST_IDS = 200
"""Rollouts that a list can be narrowed to by id."""
_SCORED = {
    Score.SOLVED: Q(outcome=Outcome.SOLVED),
    Score.FAILED: ~Q(outcome__in=[Outcome.SOLVED, *UNCOUNTED]) | Q(crash_origin__in=OWN_CRASHES),
    Score.UNSCORED: Q(outcome__in=UNCOUNTED) & ~Q(crash_origin__in=OWN_CRASHES),
}


def _scored(score: str) -> Q:
    return _SCORED[Score(score)] & Q(mode="")


class _Holds(Func):
    """Whether a list of texts holds one: compared whole, since its JSON spelling is another in each database."""

    template = "EXISTS(SELECT 1 FROM %(function)s(%(expressions)s))"
    function = "json_each"
    arg_joiner = ") AS held WHERE held.value = ("
    output_field = BooleanField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Write it for PostgreSQL."""
        joiner = self.arg_joiner.replace("AS held", "AS held(value)")
        return self.as_sql(compiler, connection, function="jsonb_array_elements_text", arg_joiner=joiner, **context)


def _tagged(tag: str) -> Q:
    return Q(_Holds(F("tags"), Value(tag, TextField())))


def _of_ids(ids: str) -> Q:
    numbers = [natural(part) for part in ids.split(".")[: MOST_IDS + 1]]
    if len(numbers) > MOST_IDS or any(number is None for number in numbers):
        raise InvalidValue("no list of rollouts", where="ids", hint=f"at most {MOST_IDS}, such as 12.15.40")
    return Q(pk__in=numbers)


def _beginning_as(prefix: str) -> Q:
    """Return who shares a case and the first events with a rollout: a slice of stored paths, in one query."""
    first, _, counted = prefix.partition("@")
    rollout, count = natural(first), natural(counted)
    if rollout is None or not count or count > MAX_EVENTS:
        raise InvalidValue(f"{prefix!r} is no prefix", hint="ID@N, such as 12@8")
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


@dataclass(frozen=True, slots=True)
class RolloutFilter(ListFilter):
    """The filters of the rollouts list."""

    project: str = exact("project__name")
    panel: str = exact("case__panel__name")
    case: str = exact("case__name")
    experiment: str = exact("experiment__name")
    tag: str = meaning(_tagged, verbatim=True)
    model: str = exact("model")
    engine: str = exact("engine")
    harness: str = exact("harness")
    revision: str = exact("revision")
    outcome: str = exact("outcome", tuple(Outcome))
    origin: str = exact("origin", tuple(Origin))
    mode: str = exact("mode", ("recorded", "live", "hybrid"))
    grade: str = exact("grade", tuple(Replayability))
    steps: str = number("steps")
    tokens: str = number("output_tokens")
    seconds: str = number("seconds")
    q: str = meaning(lambda text: Q(search__contains=text.lower()))
    prefix: str = meaning(_beginning_as)
    """`ID@N`: the same case, and the same as rollout ID in its first N counted events."""
    manifest: str = meaning(lambda digest: Q(manifest__digest__startswith=digest))
    score: str = meaning(_scored, tuple(Score))
    """Rollouts of no rerun that solved, failed or are no sample, as rates count them; see `Score`."""
    ids: str = meaning(_of_ids, longest=MOST_IDS * 20)
    """These alone, such as `12.15.40`."""
    sort: str = setting("newest", tuple(SORTS))
    by: str = setting()
    """`case` groups the list."""


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
    number = finite(value)
    if number is None:
        raise InvalidValue(f"{after[:80]!r} is no position in the list", where="after")
    further = Q(**{f"{column}__{'lt' if descends else 'gt'}": number}) | Q(**{f"{column}__isnull": True})
    return rows.filter(further | (Q(**{column: number}) & below))


def cursor(row: Rollout, sort: str) -> str:
    """Return the cursor of a row."""
    column, _ = SORTS[sort]
    value = "" if column == "id" else getattr(row, column)
    return f"{'' if value is None else value}~{row.pk}"
