"""The projects home: counts and rates with what is left out; bindings and revisions of a harness."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.errors import Conflict, NotFound
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.projects.bindings import (
    binding_of,
    bound_project,
    get_project,
    projects_to_measure,
    revisions_of,
)
from harnesslab.queries.projects.home import Home, ProjectRow, home, project_asked, project_named
from harnesslab.store.models import Project, Rollout, SourceFile
from tests.hostile import TEXTS
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def stored(outcome: Outcome = Outcome.SOLVED, **fields: Any) -> Rollout:
    return store_recording(recording(outcome=outcome, **fields), None)


def only(found: Home) -> ProjectRow:
    (row,) = found.projects
    return row


def test_a_projects_rate_is_of_its_samples_with_the_others_beside_and_reruns_nowhere() -> None:
    for trial, outcome in enumerate((Outcome.SOLVED, Outcome.FAILED_VERIFICATION, Outcome.CRASH, Outcome.UNKNOWN)):
        stored(outcome, trial=trial)
    again = stored(tags=("again",))
    Rollout.objects.filter(pk=again.pk).update(mode="recorded")
    row = only(home())
    assert (row.rate.k, row.rate.n, dict(row.rate.excluded)) == (1, 2, {"crash": 1, "unknown": 1})
    assert (row.rollouts, row.cases) == (5, 1)
    assert row.rollouts == row.rate.n + sum(row.rate.excluded.values()) + 1


def test_a_project_without_anything_has_no_rate_rather_than_a_bad_one() -> None:
    Project.objects.create(name="empty")
    row = only(home())
    assert (row.rollouts, row.cases, row.models, row.newest) == (0, 0, 0, None)
    assert (row.rate.n, row.rate.value) == (0, None)


def test_an_unknown_model_is_no_model() -> None:
    stored(model="")
    assert only(home()).models == 0
    stored(model="m-1", trial=1)
    stored(model="m-2", trial=2)
    assert only(home()).models == 2


def test_totals_are_the_sums_of_what_is_listed() -> None:
    for number in range(3):
        for case in range(number + 1):
            stored(project=f"p{number}", case=f"{case}")
    found = home()
    assert [row.name for row in found.projects] == ["p0", "p1", "p2"]
    assert (found.rollouts, found.cases) == (6, 6)


def test_an_import_says_how_many_rollouts_it_brought_and_how_many_lines_it_skipped() -> None:
    rows = [stored(trial=trial) for trial in range(2)]
    source = SourceFile.objects.create(digest="1", name="<b>x", format="f", size=1, skipped=[["line 1", "bad"]])
    nothing = SourceFile.objects.create(digest="2", name="y", format="f", size=1)
    for place, each in enumerate(rows):
        Rollout.objects.filter(pk=each.pk).update(source=source, position=place)
    newest, older = [each for each in home().activity if each.name in (source.name, nothing.name)]
    assert (newest.name, newest.rollouts, newest.first_rollout, newest.skipped) == ("y", 0, None, 0)
    assert (older.rollouts, older.first_rollout, older.skipped) == (2, rows[0].pk, 1)


def test_home_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries: Any) -> None:
    stored()
    with django_assert_max_num_queries(7):
        home()
    for number in range(12):
        stored(project=f"p{number}", experiment="e")
    with django_assert_max_num_queries(7):
        home()


@pytest.mark.parametrize("name", ["p", "12", " p ", "ü", *TEXTS])
def test_a_project_is_found_by_the_name_it_was_stored_under(name: str) -> None:
    row = stored(project=name)
    assert project_named(name) == row.project_id
    assert get_project(name).pk == row.project_id


def test_an_address_names_a_project_by_id_or_else_by_name() -> None:
    row = stored(project="p")
    assert project_asked(str(row.project_id)) == project_asked("p") == row.project_id
    for text in ("none", "²", "\x00", "x" * 500):
        with pytest.raises(NotFound, match="there is no project"):
            project_asked(text)
    for asked in (999, "none", "\udc80"):
        with pytest.raises(NotFound, match="there is no project"):
            get_project(asked)


def test_what_is_bound_comes_first_and_what_is_not_says_how(project: Project) -> None:
    loose = Project.objects.create(name="a loose one")
    assert [(row.name, row.bound) for row in projects_to_measure()] == [("measured", True), ("a loose one", False)]
    bound, unbound = bound_project(project), bound_project(loose)
    assert (bound.entry, bound.branch, bound.repository != "") == ("harness", "main", True)
    assert (unbound.entry, unbound.repository, unbound.surface) == ("harness", "", ["*.py"])
    with pytest.raises(Conflict, match="is bound to no harness repository"):
        binding_of(loose)
    with pytest.raises(Conflict, match="is bound to no harness repository"):
        revisions_of(loose)


def test_revisions_are_those_of_the_repository_and_their_absence_has_a_reason(project: Project, tmp_path: Any) -> None:
    found = revisions_of(project)
    assert (len(found.rows) > 0, found.why) == (True, "")
    (tmp_path / "harness").rename(tmp_path / "moved")
    gone = revisions_of(project)
    assert (gone.rows, gone.why != "", "\n" in gone.why) == ([], True, False)
