"""The results document of a harness matrix: its run, cells, scenarios and trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.values import instant, items, mapping, objects, text, whole


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial as the document holds it; `number` counts from 1."""

    cell: str
    scenario: str
    number: int
    row: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Results:
    """A results document."""

    run: Mapping[str, JSON]
    cells: Mapping[str, JSON]
    scenarios: list[JSON]
    definitions: Mapping[str, JSON]

    @classmethod
    def of(cls, document: JSON) -> Results:
        """Take the parts of a document."""
        whole_ = mapping(document)
        return cls(
            mapping(whole_.get("run")),
            mapping(whole_.get("cells")),
            items(whole_.get("scenarios")),
            mapping(whole_.get("scenario_defs")),
        )

    @property
    def started_at(self) -> datetime | None:
        """When the matrix was started."""
        return instant(self.run.get("started_at"))

    @property
    def revision(self) -> str:
        """The commit under test."""
        return text(mapping(mapping(self.run.get("stamps")).get("_head")).get("commit"))

    def experiment(self, cell: str) -> str:
        """Name a cell's experiment: the run by its start, as upstream names its folders, then the cell."""
        started = self.started_at
        return f"{started:%Y%m%d-%H%M%S} {cell}" if started else cell

    def config(self, cell: str) -> Mapping[str, JSON]:
        """Return the agent, model and place of a cell."""
        return mapping(mapping(self.cells.get(cell)).get("config"))

    def definition(self, scenario: str) -> Mapping[str, JSON]:
        """Return what a scenario asks and checks."""
        return mapping(self.definitions.get(scenario))

    def group(self, scenario: str) -> str:
        """Return the class of a scenario."""
        return text(self.definition(scenario).get("class"))

    def prompts(self, scenario: str) -> list[str]:
        """Return what the user says, in order."""
        return [text(turn.get("prompt")) for turn in objects(self.definition(scenario).get("turns"))]

    def trials(self) -> Iterator[Trial]:
        """Yield all trials by cell, then by scenario in the order of the run, then by number."""
        for cell, content in self.cells.items():
            found = mapping(mapping(content).get("scenarios"))
            listed = [name for name in self.scenarios if isinstance(name, str) and name in found]
            for scenario in [*listed, *(name for name in found if name not in listed)]:
                for place, row in enumerate(objects(mapping(found[scenario]).get("trials"))):
                    stated = whole(row.get("trial"))
                    yield Trial(cell, scenario, place + 1 if stated is None else stated, row)
