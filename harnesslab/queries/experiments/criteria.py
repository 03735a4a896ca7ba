"""The criteria there are: those of the lab, and those that other packages register."""

from __future__ import annotations

from importlib.metadata import entry_points

from harnesslab.core.deciding.promotion import CRITERIA, Criterion
from harnesslab.core.errors import HarnessLabError, NotFound

GROUP = "harnesslab.criteria"


class CriterionBroken(HarnessLabError):
    """A registered criterion can't be loaded."""


def criterion_names() -> list[str]:
    """Return the names of all criteria, the lab's first."""
    registered = sorted(each.name for each in entry_points(group=GROUP))
    return list(dict.fromkeys([*CRITERIA, *registered]))


def criterion(name: str) -> Criterion:
    """Return a criterion by name; raises `NotFound`, or `CriterionBroken` for a registered one that fails."""
    if name in CRITERIA:
        return CRITERIA[name]
    for each in entry_points(group=GROUP, name=name):
        try:
            made: Criterion = each.load()()
        except Exception as error:
            raise CriterionBroken(
                f"{type(error).__name__}: {error}", where=f"criterion {name} ({each.value})"
            ) from error
        return made
    raise NotFound(f"there is no criterion {name!r}", hint=f"one of {', '.join(criterion_names())}")
