"""Measurement identity: what differs is named, what nobody stated is not shown equal."""

from __future__ import annotations

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.identity import identity_differences, identity_digest, refused
from harnesslab.core.conditions.manifest import Difference, Manifest


def manifest(**values: JSON) -> Manifest:
    return Manifest.of({name.replace("__", "."): value for name, value in values.items()}, unknown="not recorded")


def test_equal_conditions_are_left_out_and_unknown_ones_are_not_shown_equal() -> None:
    rows = identity_differences([("a", manifest(model__name="m"), manifest(model__name="m"))])
    assert "model.name" not in [row.field.name for row in rows]
    assert {row.difference for row in rows} == {Difference.NOT_SHOWN}
    assert refused(rows) == []


def test_a_condition_that_differs_is_named_once_with_its_cases_and_refuses() -> None:
    pair = (manifest(sampling__temperature=0.0), manifest(sampling__temperature=1.0))
    rows = identity_differences([("a", *pair), ("b", *pair)])
    assert (rows[0].field.name, rows[0].a, rows[0].b, rows[0].cases) == ("sampling.temperature", 0.0, 1.0, ("a", "b"))
    assert refused(rows) == ["sampling.temperature"]


def test_what_a_candidate_may_change_refuses_nothing() -> None:
    before = manifest(harness__revision="1", serving__load=1, seeds__seed="4", panel__revision="x", hardware__cpu="a")
    after = manifest(harness__revision="2", serving__load=3, seeds__seed="5", panel__revision="y", hardware__cpu="b")
    assert refused(identity_differences([("a", before, after)])) == []


def test_a_case_whose_content_changed_is_no_comparison() -> None:
    rows = identity_differences([("a", manifest(panel__case_digest="1"), manifest(panel__case_digest="2"))])
    assert refused(rows) == ["panel.case_digest"]


def test_the_digest_is_of_what_all_cases_share() -> None:
    one = {"a": manifest(model__name="m", budgets__steps=3), "b": manifest(model__name="m", budgets__steps=9)}
    fewer = {"a": one["a"], "c": manifest(model__name="m", budgets__steps=7)}
    other = {"a": manifest(model__name="n", budgets__steps=3), "b": manifest(model__name="n", budgets__steps=9)}
    assert identity_digest(one) == identity_digest(fewer)
    assert identity_digest(one) != identity_digest(other)
    assert identity_digest({}) == ""
