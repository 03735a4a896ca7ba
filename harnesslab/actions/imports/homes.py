"""Which project an import belongs to, so that a project's story is one lineage."""

from __future__ import annotations

from itertools import count

from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.rollout import Recording
from harnesslab.formats.places import place_of_workspace
from harnesslab.formats.reading.inputs import SourcePlace, Unit
from harnesslab.store.models import Project
from harnesslab.store.text import storable

UNNAMED = Recording.__dataclass_fields__["project"].default
"""The project of a source that names none."""
LONGEST = 200


class ProjectChoice:
    """Names the project of what a unit holds: as asked for, as the source says, else by where it came from."""

    def __init__(self, unit: Unit, wanted: str | None) -> None:
        self._unit, self._wanted = unit, wanted

    def of(self, named: str, workspace: str = "") -> str:
        """Return the project's name; one of the same name that came from elsewhere gets a suffix.

        Raises `InvalidValue` where nothing says it and it must be said, since `wanted` is None.
        """
        if self._wanted or named != UNNAMED:
            return self._wanted or named
        place = place_of_workspace(workspace) if workspace else self._unit.place
        if place is not None and place.name:
            return settled(place)
        if self._wanted is None:
            raise InvalidValue("it names no project", where=self._unit.name, hint="name one beside the files")
        return named


def settled(place: SourcePlace) -> str:
    """Return the name of the project of a place, making it where there is none yet."""
    known = Project.objects.filter(origin=place.origin).order_by("pk").values_list("name", flat=True).first()
    if known is not None:
        return known
    base = storable(place.name, LONGEST - 8)
    for number in count(1):
        name = base if number == 1 else f"{base} ({number})"
        row, made = Project.objects.get_or_create(name=name, defaults={"origin": place.origin})
        # a project that somebody named takes what bears its name; one of another place doesn't
        if made or not row.origin or row.origin == place.origin:
            return row.name
    raise AssertionError("a number is always left")
