"""Criteria that other packages register are found by name; a broken one is named, and breaks nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.core.deciding.promotion import judge
from harnesslab.core.errors import NotFound
from harnesslab.core.measuring.cells import Cell
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.criteria import CriterionBroken, criterion, criterion_names

MODULE = """
from harnesslab.core.measuring.experiments import Verdict
from harnesslab.core.deciding.promotion import Decision

class Generous:
    name = "generous"

    def decide(self, baseline, candidate):
        return Decision(Verdict.PROMOTED, "always", self.name)

class Broken:
    def __init__(self):
        raise RuntimeError("no such file")
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with two criteria."""
    (tmp_path / "own_criteria.py").write_text(MODULE)
    info = tmp_path / "own_criteria-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-criteria\nVersion: 1\n")
    entries = "[harnesslab.criteria]\ngenerous = own_criteria:Generous\nbroken = own_criteria:Broken\n"
    (info / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own_criteria", None)


def test_a_registered_criterion_decides() -> None:
    assert criterion_names()[:3] == ["strict_pareto@2", "strict_pareto_both_sides@2", "paired_test@2"]
    assert {"generous", "broken"} <= set(criterion_names())
    cells = {"a": [Cell("a", 0, Outcome.FAILED_VERIFICATION, 0)]}
    assert judge(criterion("generous"), cells, cells).reason == "always"


def test_a_broken_criterion_is_one_sentence() -> None:
    with pytest.raises(CriterionBroken, match=r"criterion broken \(own_criteria:Broken\): RuntimeError: no such file"):
        criterion("broken")


def test_a_name_that_nobody_registered_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound, match="strict_pareto"):
        criterion("most_hopeful")
