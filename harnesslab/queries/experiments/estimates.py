"""What an experiment would cost before it is asked for, going by earlier rollouts of its cases."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Avg, Count, QuerySet

from harnesslab.queries.read_model import ReadModel
from harnesslab.store.models import PanelRevision, Rollout


class Estimate(ReadModel):
    """Cases times trials, and what they took before; None where nothing is known."""

    cases: int
    trials: int
    known: int
    """Cases with earlier rollouts; the mean of these stands for the others."""
    based_on: int
    """Rollouts that it is estimated from."""
    seconds: float | None
    """One after the other."""
    input_tokens: int | None
    output_tokens: int | None

    @property
    def rollouts(self) -> int:
        """How many rollouts will be made."""
        return self.cases * self.trials

    @property
    def sentence(self) -> str:
        """Say what it costs."""
        n = f"{self.rollouts:,} rollout{'s' * (self.rollouts != 1)}"
        many = f"{self.cases:,} case{'s' * (self.cases != 1)} × {self.trials} trial{'s' * (self.trials != 1)} = {n}"
        if not self.based_on:
            return f"{many}; nothing is known of what they take, since none of these cases ran here before."
        tokens = [
            f"{count:,} {kind} tokens"
            for count, kind in ((self.input_tokens, "prompt"), (self.output_tokens, "output"))
            if count is not None
        ]
        cost = ", ".join([f"{many}: {self._took}", *tokens])
        known = "" if self.known == self.cases else f" of {self.known} of the cases"
        return f"{cost}; going by {self.based_on:,} earlier rollout{'s' * (self.based_on != 1)}{known}."

    @property
    def _took(self) -> str:
        if self.seconds is None:
            return "how long they take is unknown"
        took = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} minutes"
        return f"about {took} one after the other"


def estimate(panel: PanelRevision, cases: Sequence[str], trials: int, engine: str) -> Estimate:
    """Estimate from the rollouts that workers made of these cases, on the same engine where there are any."""
    names = list(dict.fromkeys(cases))
    rows = Rollout.objects.filter(
        project=panel.panel.project_id, case__panel__name=panel.panel.name, case__name__in=names, mode=""
    ).exclude(head=None)
    on_engine = rows.filter(engine=engine)
    grouped = _means(on_engine) or _means(rows)

    def total(place: int) -> float | None:
        known = [float(value) for row in grouped if (value := row[place]) is not None]
        return sum(known) * len(names) / len(known) * trials if known else None

    given, made = total(2), total(3)
    return Estimate(
        cases=len(names),
        trials=trials,
        known=len(grouped),
        based_on=sum(row[0] for row in grouped),
        seconds=total(1),
        input_tokens=None if given is None else round(given),
        output_tokens=None if made is None else round(made),
    )


def _means(rows: QuerySet[Rollout]) -> list[tuple[int, float | None, float | None, float | None]]:
    grouped = (
        rows.order_by()
        .values("case__name")
        .annotate(n=Count("pk"), took=Avg("seconds"), given=Avg("input_tokens"), made=Avg("output_tokens"))
    )
    return [(row["n"], row["took"], row["given"], row["made"]) for row in grouped]
