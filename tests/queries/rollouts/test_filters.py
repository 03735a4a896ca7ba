"""Filters and facets of rollouts: each value leaves as many rows as it was counted with, whatever its text."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.efficiency.spending import Score
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.rollout import UNCOUNTED, Outcome
from harnesslab.queries.rollouts.facets import FACETS, facet
from harnesslab.queries.rollouts.filters import MOST_IDS, RolloutFilter
from harnesslab.queries.rollouts.listing import rollout_page
from harnesslab.store.models import Rollout
from tests.hostile import TEXTS
from tests.recordings import COMMANDS, recording

pytestmark = pytest.mark.django_db


def passing(**filters: str) -> list[int]:
    return [row.id for row in rollout_page(RolloutFilter.of({"sort": "oldest", **filters})).rows]


def stored(**fields: Any) -> int:
    return store_recording(recording(**fields), None).pk


@pytest.fixture
def varied(db: None) -> list[int]:
    """Rollouts that differ in everything that has a facet."""
    names = ("a", "ab", "A", "a b", "100%", "under_score", 'quo"te', "back\\slash", "ü", "名", "<b>&</b>")
    return [
        stored(
            case=name,
            project=f"project {name}",
            panel=f"panel {number % 3}",
            experiment=f"run {name}" if number % 2 else "",
            tags=(name, "all") if number else (),
            engine=name if number % 2 else "",
            model=name,
            harness=f"loop {number % 2}",
            revision=name,
        )
        for number, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", FACETS)
def test_each_value_of_a_facet_leaves_as_many_rollouts_as_it_was_counted_with(varied: list[int], name: str) -> None:
    counted = facet(RolloutFilter(), name)
    assert len(counted) > 1
    assert {value: len(passing(**{name: value})) for value, _ in counted} == dict(counted)


def test_hostile_tags_are_found_by_their_own_text() -> None:
    texts = [text for text in TEXTS if "\x00" not in text and "\ud800" not in text]
    for number, text in enumerate(texts):
        stored(case=f"case {number}", tags=(text,))
    for value, count in facet(RolloutFilter(), "tag"):
        assert (len(passing(tag=value)), count) == (1, 1), value


def test_tags_of_any_letters_are_found_and_two_spellings_of_one_are_told_apart() -> None:
    texts = ("größe", "gro\u0308ße", "план", 'a"b', "x\\y", "50%_off", "é", "e\u0301")
    found = {text: stored(case=f"case {number}", tags=(text,)) for number, text in enumerate(texts)}
    assert {text: passing(tag=text) for text in texts} == {text: [pk] for text, pk in found.items()}


def test_facets_are_of_the_values_under_the_other_filters_the_most_frequent_first(varied: list[int]) -> None:
    stored(case="ab", model="a", tags=("ab",))
    assert facet(RolloutFilter(case="ab"), "model") == [("a", 1), ("ab", 1)]
    assert dict(facet(RolloutFilter(model="a"), "model"))["ab"] == 1  # its own filter doesn't narrow it
    assert facet(RolloutFilter(), "tag")[0] == ("all", 10)
    assert facet(RolloutFilter(), "harness")[0][0] == "loop 0"


def test_facets_are_narrowed_by_a_text_that_they_contain(varied: list[int]) -> None:
    assert {value for value, _ in facet(RolloutFilter(), "tag", "B")} == {"ab", "a b", "back\\slash", "<b>&</b>"}
    assert facet(RolloutFilter(), "case", "100%") == [("100%", 1)]
    assert facet(RolloutFilter(), "case", "_") == [("under_score", 1)]
    assert facet(RolloutFilter(), "case", "none such") == []


@pytest.mark.parametrize("text", ["\x00", "\udc80", "a\x00b"])
@pytest.mark.parametrize("name", ["case", "tag"])
def test_a_text_that_no_name_can_hold_is_in_none(varied: list[int], name: str, text: str) -> None:
    assert facet(RolloutFilter(), name, text) == []


@pytest.mark.parametrize("name", ["sort", "ids", "password", "case__name", ""])
def test_what_is_no_filter_has_no_facet(name: str) -> None:
    with pytest.raises(InvalidValue, match="no such filter"):
        facet(RolloutFilter(), name)


def test_a_tag_is_the_whole_of_it() -> None:
    a, ab, upper = stored(tags=("a",)), stored(tags=("ab",), trial=1), stored(tags=("A",), trial=2)
    assert (passing(tag="a"), passing(tag="ab"), passing(tag="A")) == ([a], [ab], [upper])


def test_solved_failed_and_unscored_are_every_rollout_of_no_rerun_once() -> None:
    outcomes = dict(enumerate(Outcome))
    rows = {stored(trial=number, outcome=outcome): outcome for number, outcome in outcomes.items()}
    again = stored(tags=("again",), outcome=Outcome.SOLVED)
    Rollout.objects.filter(pk=again).update(mode="live")
    for pk, outcome in rows.items():
        Rollout.objects.filter(pk=pk).update(outcome=outcome)
    solved, failed, unscored = (passing(score=score) for score in (Score.SOLVED, Score.FAILED, Score.UNSCORED))
    assert sorted([*solved, *failed, *unscored]) == sorted(rows)
    assert [rows[pk] for pk in solved] == [Outcome.SOLVED]
    assert {rows[pk] for pk in unscored} == set(UNCOUNTED)


def test_numbers_are_between_their_ends_and_unknown_ones_pass_nowhere() -> None:
    rows = [stored(trial=number) for number in range(4)]
    for pk, tokens in zip(rows, (0, 8, 20, None), strict=True):
        Rollout.objects.filter(pk=pk).update(output_tokens=tokens)
    for value, places in (("8", [1]), ("8..20", [1, 2]), ("8..", [1, 2]), ("..8", [0, 1]), ("0", [0]), ("21..8", [])):
        assert passing(tokens=value) == [rows[place] for place in places], value
    assert passing(tokens="..1e300") == rows[:3]
    assert passing(tokens="1e300..") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", "x"),
        ("steps", "1..x"),
        ("seconds", "nan"),
        ("tokens", "..inf"),
        ("tokens", ".."),
        ("outcome", "happy"),
        ("mode", "dreamt"),
        ("score", "lucky"),
        ("sort", "at-random"),
        ("case", "\x00"),
        ("q", "x" * 1001),
        ("case", "\udc80"),
        ("prefix", "1"),
        ("prefix", "1@0"),
        ("prefix", "@"),
        ("prefix", "1@99999999999999999"),
        ("ids", "1.x"),
        ("ids", ".".join(["1"] * (MOST_IDS + 1))),
    ],
)
def test_a_value_that_can_not_be_one_is_refused_with_a_sentence(name: str, value: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        RolloutFilter.of({name: value}).apply(Rollout.objects.all())
    assert refused.value.sentence
    assert "\n" not in refused.value.sentence


def test_a_prefix_is_the_same_case_with_the_same_first_events() -> None:
    whole, same = stored(), stored(trial=1)
    parts = stored(commands=(*COMMANDS[:2], "true"), trial=2)
    at_once = stored(commands=("pwd", *COMMANDS[1:]), trial=3)
    elsewhere = stored(case="case-2")
    length = len(bytes(Rollout.objects.get(pk=whole).path or b""))
    assert length
    assert passing(prefix=f"{whole}@1") == [whole, same, parts, at_once]  # all begin with the same user turn
    assert passing(prefix=f"{whole}@3") == [whole, same, parts]
    assert elsewhere not in passing(prefix=f"{whole}@1")
    assert passing(prefix=f"{whole}@5000") == passing(prefix="9999@1") == []


def test_ids_a_manifest_and_words_narrow_the_list() -> None:
    one, two = stored(case="the Needle 100% of it"), stored(case="other", conditions={"model.name": "m-2"})
    digest = Rollout.objects.get(pk=two).manifest_id
    assert passing(ids=f"{two}.999") == [two]
    assert passing(manifest=digest[:12]) == [two]
    assert passing(q="NEEDLE 100%") == [one]
    assert passing(q="needle_100") == []


def test_filters_are_written_as_they_are_read() -> None:
    query = {"case": "a&b=c", "tokens": "8..20", "sort": "longest", "tag": "ü"}
    chosen = RolloutFilter.of(query)
    assert dict(parse_qsl(chosen.url())) == query
    assert dict(chosen.active) == {name: value for name, value in query.items() if name != "sort"}
    assert chosen.without("case").case == ""
