"""Filters of both lists are read, written and applied by one declaration."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.efficiency.spending import Score
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.rollout import Outcome
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.queries.rollouts.filters import RolloutFilter
from harnesslab.store.models import Rollout
from tests.recordings import recording

pytestmark = pytest.mark.django_db


def steps(query: str) -> list[int]:
    """Return the steps of the rollouts that pass, fewest first."""
    rows = RolloutFilter.of(QueryDict(query).dict()).apply(Rollout.objects.all())
    return sorted(rows.values_list("steps", flat=True))


@pytest.mark.parametrize(
    ("query", "passed"),
    [("", [2, 5, 9]), ("steps=5", [5]), ("steps=5..", [5, 9]), ("steps=..5", [2, 5]), ("steps=3..8", [5])],
)
def test_a_number_is_a_value_or_a_range_with_its_ends(query: str, passed: list[int]) -> None:
    for count in (2, 5, 9):
        store_recording(recording([f"command {step}" for step in range(count)], case=f"of {count}"), None)
    assert steps(query) == passed


def test_an_unknown_number_never_passes() -> None:
    store_recording(recording(["ls"], case="no times"), None)
    assert Rollout.objects.get().seconds is None
    assert steps("seconds=0..") == steps("seconds=..1000000") == []


@pytest.mark.parametrize("value", ["..", "x", "1..x", "1_0", "١", "nan", "inf..", "1..2..3", "1" * 400])
def test_what_is_no_number_is_refused_with_what_would_be(value: str) -> None:
    with pytest.raises(InvalidValue, match=r"^tokens: .*8, 8\.\.20, 8\.\. or \.\.20"):
        RolloutFilter.of({"tokens": value}).apply(Rollout.objects.all()).count()


@pytest.mark.parametrize("declared", [RolloutFilter, ExperimentFilter])
def test_filters_survive_their_own_address(declared: type[RolloutFilter | ExperimentFilter]) -> None:
    chosen = declared.of({name: values[0] for name, values in declared.choices().items()} | {"project": "a&b=c é"})
    assert declared.of(QueryDict(chosen.url()).dict()) == chosen
    assert dict(chosen.active)["project"] == "a&b=c é"
    assert "project" not in dict(chosen.without("project").active)


@pytest.mark.parametrize("value", ["..1e300", "-1e300..", "-1e300..1e300"])
def test_an_unknown_number_passes_no_range_however_wide(value: str) -> None:
    row = store_recording(recording(), None)
    chosen = RolloutFilter(tokens=value)
    assert chosen.apply(Rollout.objects.all()).count() == 1
    Rollout.objects.filter(pk=row.pk).update(output_tokens=None)
    assert chosen.apply(Rollout.objects.all()).count() == 0


@pytest.mark.parametrize("name", [" a", "a ", "\ta", " ", "a"])
def test_a_name_is_found_with_the_blanks_that_it_has(name: str) -> None:
    store_recording(recording(case=name, tags=(name,)), None)
    store_recording(recording(case="other"), None)
    for chosen in (RolloutFilter.of({"case": name}), RolloutFilter.of({"tag": name})):
        assert chosen.apply(Rollout.objects.all()).get().case.name == name


def test_blanks_around_a_number_or_a_choice_are_none_of_it() -> None:
    assert RolloutFilter.of({"steps": " 8.. ", "outcome": " solved "}) == RolloutFilter(steps="8..", outcome="solved")


@pytest.mark.parametrize("value", ["\udc80", "a\ud800b", "\x00", "x" * 1001])
def test_what_no_database_takes_is_one_sentence(value: str) -> None:
    with pytest.raises(InvalidValue, match="longer than 1000 characters or holds a NUL or half a character"):
        ExperimentFilter.of({"project": value})


def test_defaults_are_in_no_address_and_no_chip() -> None:
    assert RolloutFilter.of({"sort": "newest", "by": ""}).url() == ""
    assert RolloutFilter.of({"sort": "oldest"}).active == []


@pytest.mark.parametrize("declared", [RolloutFilter, ExperimentFilter])
def test_values_that_no_filter_has_are_refused_by_name(declared: type[RolloutFilter | ExperimentFilter]) -> None:
    for name, choices in declared.choices().items():
        with pytest.raises(InvalidValue, match=f"no such {name}: sideways") as error:
            declared.of({name: "sideways"})
        assert str(choices[0]) in error.value.sentence
    for value in ("a\x00b", "x" * 1001):
        with pytest.raises(InvalidValue, match="no filter is longer than 1000 characters or holds a NUL"):
            declared.of({"project": value})


def test_scores_part_rollouts_as_rates_count_them() -> None:
    store_recording(recording(["ls"], case="one", outcome=Outcome.SOLVED), None)
    store_recording(recording(["ls"], case="two", outcome=Outcome.INFRA_ERROR), None)
    store_recording(recording(["ls"], case="three", outcome=Outcome.STEP_CAP), None)
    chosen = {score: RolloutFilter.of({"score": score}) for score in Score}
    assert {score: each.apply(Rollout.objects.all()).count() for score, each in chosen.items()} == dict.fromkeys(
        Score, 1
    )
