"""Token efficiency: what is of what, what is left out, and links that lead to as many rollouts as they say."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest

from harnesslab.core.efficiency.factors import Ratio
from harnesslab.core.errors import InvalidValue, NotFound
from harnesslab.core.running.rollout import Outcome
from harnesslab.figures.sheets import Sheet
from harnesslab.queries.efficiency.page import Efficiency, efficiency, uncounted
from harnesslab.queries.efficiency.words import figure, percent
from harnesslab.queries.experiments.sums import EfficiencyQuery
from harnesslab.queries.rollouts.filters import MOST_IDS, RolloutFilter
from harnesslab.queries.rollouts.listing import rollout_page
from harnesslab.store.models import Project, Rollout
from tests.pages.experiments import FAILED, HOSTILE, SOLVED, measured

pytestmark = pytest.mark.django_db


def read(*ids: int, **query: str) -> Efficiency:
    chosen = EfficiencyQuery.of([str(each) for each in ids], query)
    return efficiency(chosen, uncounted(chosen))


def sheet(found: Efficiency, name: str) -> list[dict[str, Any]]:
    (chosen,) = [each for each in found.sheets if each.name == name]
    titles = [column.title for column in chosen.columns]
    return [dict(zip(titles, row, strict=True)) for row in chosen.rows]


@pytest.fixture
def pair(db: None) -> tuple[int, int]:
    a = measured("before", {"one": SOLVED, "two": FAILED, "three": Outcome.CRASH, "four": Outcome.UNKNOWN})
    b = measured("after", {"one": SOLVED, "two": SOLVED, "three": FAILED})
    return a.pk, b.pk


def test_tokens_are_of_all_counted_rollouts_and_solves_of_the_solved(pair: tuple[int, int]) -> None:
    found = read(pair[0])
    (side,) = found.sides
    assert (side.identity.solved, side.uncounted) == (1, 0)
    assert side.identity.rollouts + len(side.identity.left_out) == 4
    totals = sheet(found, "totals")[0]
    assert (totals["rollouts"].value, totals["solved"].value) == (4, 1)
    spend = sheet(found, "spend")
    assert sum(row["rollouts"].value for row in spend) == side.identity.rollouts


def test_links_lead_to_as_many_rollouts_as_they_say(pair: tuple[int, int]) -> None:
    measured(HOSTILE, {f" {HOSTILE}": SOLVED, "=x": FAILED})
    odd = Rollout.objects.order_by("-pk")[0].experiment_id or 0
    checked = 0
    for found in (read(*pair), read(odd)):
        for name, column in (
            ("spend", "rollouts"),
            ("failed-cases", "rollouts"),
            ("totals", "rollouts"),
            ("totals", "solved"),
        ):
            for row in sheet(found, name):
                entry = row[column]
                if entry.query:
                    chosen = RolloutFilter.of(dict(parse_qsl(entry.query)))
                    assert rollout_page(chosen).count == entry.value, (name, entry)
                    checked += 1
    assert checked >= 10


def test_levers_add_up_to_the_total(pair: tuple[int, int]) -> None:
    (moved,) = read(*pair).levers
    assert moved.total.log == pytest.approx(sum(each.log or 0 for each in moved.factors))
    assert moved.total.change is not None


def test_what_nothing_solved_is_undefined_and_says_why() -> None:
    row = measured("lost", {"one": FAILED})
    found = read(row.pk)
    assert found.sentence == "Output tokens per solve are undefined: none of 1 rollouts was solved."
    assert found.sides[0].identity.per_solve.value is None
    other = read(measured("won", {"one": SOLVED}).pk, row.pk)
    assert "can't be compared" in other.sentence
    many = read(row.pk, measured("x", {"one": FAILED}).pk, measured("y", {"one": FAILED}).pk)
    assert many.sentence.startswith("None of 3 experiments has output tokens per solve: none of 1 rollouts")


def test_rollouts_that_are_not_counted_are_waiting_and_in_no_number(pair: tuple[int, int]) -> None:
    Rollout.objects.filter(case__name="one", experiment=pair[0]).update(anatomy=b"", counted_by=1)
    Rollout.objects.filter(case__name="two", experiment=pair[0]).update(counted_by=1)
    found = read(pair[0])
    assert (found.waiting, found.older, found.sides[0].uncounted) == (1, 1, 1)
    assert sheet(found, "totals")[0]["not counted yet"].value == 1


def test_costs_without_a_price_are_unknown_and_a_wrong_price_is_none(pair: tuple[int, int]) -> None:
    assert read(pair[0]).sides[0].cost.amount is None
    Project.objects.update(prices={"m-1": {"input": "free", "cached": True, "output": -1}, "x": 5})
    assert read(pair[0]).sides[0].cost.amount is None
    Project.objects.update(prices={"m-1": {"input": 0.0, "cached": 0.0, "output": 1.0}})
    cost = read(pair[0]).sides[0].cost
    assert cost.amount is not None
    assert cost.amount > 0


def test_reruns_are_in_no_number(pair: tuple[int, int]) -> None:
    before = read(pair[0]).sides[0].model_dump()
    again = measured("before", {"one": SOLVED})
    Rollout.objects.filter(pk=Rollout.objects.order_by("-pk")[0].pk).update(mode="live")
    assert again.pk == pair[0]
    assert read(pair[0]).sides[0].model_dump() == before


def test_the_same_cases_are_those_that_all_measured_or_solved(pair: tuple[int, int]) -> None:
    assert [side.cases for side in read(*pair).sides] == [4, 3]
    assert [side.cases for side in read(*pair, cases="common").sides] == [2, 2]  # a crash measured nothing
    solved = read(*pair, cases="solved")
    assert [side.cases for side in solved.sides] == [1, 1]
    assert "Over the 1 case solved in every experiment" in solved.caveat
    assert "Over the 2 cases measured in every experiment" in read(*pair, cases="common").caveat


def test_read_models_and_sheets_tell_one_number(pair: tuple[int, int]) -> None:
    found = read(*pair)
    dumped = found.model_dump(mode="json")
    assert [side["identity"]["solved"] for side in dumped["sides"]] == [1, 2]
    assert [row["solved"].value for row in sheet(found, "totals")] == [1, 2]
    assert {each["name"] for each in dumped["sheets"]} == {each.name for each in found.sheets}
    assert all(isinstance(each, Sheet) for each in found.sheets)


def test_numbers_take_as_many_queries_for_many_as_for_few(
    pair: tuple[int, int], django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(4):
        read(*pair)
    more = [measured(f"e{n}", {f"{case}": SOLVED for case in range(4)}).pk for n in range(4)]
    with django_assert_num_queries(4):
        read(*pair, *more)


@pytest.mark.parametrize(
    ("ids", "query", "said"),
    [
        ([], {}, "from 1 to 8 experiments"),
        (["x"], {}, "from 1 to 8 experiments"),
        ([str(n) for n in range(9)], {}, "from 1 to 8 experiments"),
        (["1"], {"kind": "water"}, "'water' is none"),
        (["1"], {"answers": "\x00"}, "is none"),
        (["1"], {"cases": "some" * 50}, "is none"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(ids: list[str], query: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)):
        EfficiencyQuery.of(ids, query)


def test_an_experiment_that_is_not_there_is_one_sentence(pair: tuple[int, int]) -> None:
    with pytest.raises(NotFound, match="there is no experiment 999"):
        read(pair[0], 999)


def test_rollouts_too_many_to_name_are_linked_all_together(pair: tuple[int, int]) -> None:
    (side,) = read(pair[0]).sides
    assert side.behind([]) == ""
    assert side.behind([1, 2]) == "ids=1.2"
    assert side.behind(range(MOST_IDS + 1)) == side.query()


@pytest.mark.parametrize(
    ("change", "said"), [(0.25, "+25 %"), (-0.5, "−50 %"), (0.004, "+0.4 %"), (9.0, "×10"), (99.0, "×100")]
)
def test_changes_are_written_with_their_sign(change: float, said: str) -> None:
    assert percent(change) == said


def test_a_quotient_over_nothing_is_undefined() -> None:
    assert figure(Ratio(1, 0, "nothing")) == "undefined"
    assert figure(Ratio(1234, 1, "")) == "1,234"
    assert figure(Ratio(1, 3, "")) == "0.333"
