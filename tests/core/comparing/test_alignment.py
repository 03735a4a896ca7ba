"""Alignment pairs what is alike, and counts one inserted step as one edit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.comparing.alignment import SAME, Item, Relation, Row, align, summarise
from harnesslab.core.comparing.comparison import compare_traces
from harnesslab.core.contracts.contract import RAW, Contract, Level
from harnesslab.core.trace.events import AnyEvent
from tests.core.traces import bash, episode, model, reader, request

KINDS = {0: "model_call", 1: "tool_call", 2: "tool_call", 3: "user_turn", 4: "model_call", 5: "tool_call"}
ITEMS = st.lists(st.integers(0, 5), max_size=14).map(
    lambda digests: [Item(digest, KINDS[digest], step // 2) for step, digest in enumerate(digests)]
)


@given(ITEMS, ITEMS)
def test_each_side_is_covered_exactly_once(a: list[Item], b: list[Item]) -> None:
    rows = align(a, b)
    assert sorted(row.a for row in rows if row.a is not None) == list(range(len(a)))
    assert [row.b for row in rows if row.b is not None] == list(range(len(b)))
    stay = [row.a for row in rows if row.a is not None and row.relation is not Relation.MOVED]
    assert stay == sorted(stay)


@given(ITEMS, ITEMS)
def test_applying_the_rows_to_a_gives_b(a: list[Item], b: list[Item]) -> None:
    made: list[Item] = []
    for row in align(a, b):
        if row.b is None:
            continue
        taken = row.relation in (Relation.EQUAL, Relation.MOVED)
        assert (row.a is not None) == (row.relation is not Relation.ONLY_B)
        made.append(a[row.a] if taken and row.a is not None else b[row.b])
    assert [item.digest for item in made] == [item.digest for item in b]


@given(ITEMS, ITEMS)
def test_rows_that_are_called_equal_are_equal(a: list[Item], b: list[Item]) -> None:
    for row in align(a, b):
        if row.a is None or row.b is None:
            assert row.relation in (Relation.ONLY_A, Relation.ONLY_B)
            continue
        equal = a[row.a].digest == b[row.b].digest
        assert equal == (row.relation in (Relation.EQUAL, Relation.MOVED))
        assert a[row.a].kind == b[row.b].kind


@given(ITEMS)
def test_a_list_aligned_with_itself_is_equal_throughout(a: list[Item]) -> None:
    rows = align(a, a)
    assert rows == [Row(Relation.EQUAL, index, index) for index in range(len(a))]
    assert summarise(rows, a, a).edits == 0


def steps(*names: str) -> list[list[AnyEvent]]:
    """Make a step for each name; `a+b` is a step with two parallel calls."""
    return [
        [
            model(None, *(request("bash", {"command": command}) for command in name.split("+"))),
            *(bash(command, f"result of {command}", emitted=at) for at, command in enumerate(name.split("+"))),
        ]
        for name in names
    ]


def test_an_inserted_step_is_one_edit() -> None:
    a, b = steps("one", "two", "three", "four"), steps("one", "new", "two", "three", "four")
    found = compare_traces(reader(episode(*a)), reader(episode(*b)), Contract(Level.BEHAVIOUR))
    assert found.summary.edits == 1
    assert (found.summary.only_a, found.summary.only_b, found.summary.changed) == (0, 2, 0)
    assert found.summary.rejoins_at is not None


def test_a_step_inserted_a_step_dropped_and_two_calls_swapped_are_three_edits() -> None:
    names = [f"step{number}" for number in range(9)]
    a = steps(*names, "dropped", "x+y", "last")
    b = steps(*names[:2], "new", *names[2:], "y+x", "last")
    for contract in (RAW, Contract(Level.BEHAVIOUR)):
        found = compare_traces(reader(episode(*a)), reader(episode(*b)), contract)
        assert found.summary.edits == 3
        assert found.summary.moved == 1
        assert found.contractual is not None
        assert found.contractual.step == 2
        assert found.summary.rejoins_at is not None


def test_a_changed_step_that_lost_a_call_is_one_edit() -> None:
    a, b = steps("one", "x+y", "last"), steps("one", "z", "last")
    found = compare_traces(reader(episode(*a)), reader(episode(*b)), Contract(Level.BEHAVIOUR))
    assert found.summary.edits == 1


def test_traces_that_never_agree_again_do_not_rejoin() -> None:
    a, b = steps("one", "two"), steps("one", "three")
    found = compare_traces(reader(episode(*a)), reader(episode(*b)), Contract(Level.BEHAVIOUR))
    assert found.summary.rejoins_at is None  # the end is equal, but no action is


def test_rejoining_needs_an_action_and_a_difference_before() -> None:
    def item(digest: int, kind: str = "tool_call") -> Item:
        return Item(digest, kind, digest)

    a, b = [item(1), item(2), item(3)], [item(1), item(9), item(3)]
    assert summarise(align(a, b), a, b).rejoins_at == 2
    a, b = [item(1), item(3, "rollout_ended")], [item(2), item(3, "rollout_ended")]
    assert summarise(align(a, b), a, b).rejoins_at is None
    assert summarise(align(a, a), a, a).rejoins_at is None
    assert {row.relation for row in align(a, a)} <= SAME
