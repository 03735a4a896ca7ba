"""A manifest states every condition, or says that it is unknown and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.core.canonical import canonical_bytes, parse
from harnesslab.core.conditions.fields import BY_NAME, FIELDS
from harnesslab.core.conditions.manifest import (
    Difference,
    Known,
    Manifest,
    Provenance,
    Unknown,
    compare,
    declared_differences,
)
from harnesslab.core.errors import InvalidValue
from tests.core.traces import VALUES

SCHEMA = "harnesslab.manifest/1"

CONDITIONS = st.dictionaries(
    st.sampled_from(sorted(BY_NAME)),
    st.builds(Known, VALUES, st.sampled_from(Provenance)) | st.builds(Unknown, st.text(max_size=9)),
    max_size=8,
)


def test_a_condition_is_known_with_its_origin_or_unknown_with_a_reason() -> None:
    manifest = Manifest.of(
        {"model.name": "m", "seeds.seed": None},
        unknown="not recorded",
        provenance=Provenance.SERVER,
        reasons={"seeds.seed": "the server hides it"},
    )
    assert manifest["model.name"] == Known("m", Provenance.SERVER)
    assert manifest["seeds.seed"] == Unknown("the server hides it")
    assert manifest["engine.kernels"] == Unknown("not recorded")
    assert manifest.value("model.name") == "m"
    assert manifest.value("engine.kernels") is None
    assert manifest.completeness == (1, len(FIELDS))
    assert len(list(manifest.unknowns())) == len(FIELDS) - 1


@pytest.mark.parametrize("values", [{"model.nmae": "m"}, {"": 1}, {"model": {}}])
def test_a_name_that_is_no_field_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="not a manifest field"):
        Manifest.of(values, unknown="")
    with pytest.raises(InvalidValue, match="not a manifest field"):
        Manifest.of({}, unknown="", reasons=dict.fromkeys(values, "why"))


@given(CONDITIONS)
def test_a_manifest_read_back_is_the_one_written(known: dict[str, Known | Unknown]) -> None:
    manifest = Manifest.from_conditions(known, unknown="not stated")
    read = Manifest.from_json(parse(manifest.canonical()))
    assert read.canonical() == manifest.canonical()
    assert read.digest == manifest.digest
    assert read.identity == manifest.identity
    assert read.completeness == manifest.completeness


@given(CONDITIONS)
def test_only_identity_fields_change_the_identity(known: dict[str, Known | Unknown]) -> None:
    bare = Manifest.from_conditions({}, unknown="not stated")
    other = {name: value for name, value in known.items() if not BY_NAME[name].identity}
    assert Manifest.from_conditions(other, unknown="not stated").identity == bare.identity


@pytest.mark.parametrize("field", [field.name for field in FIELDS if field.identity])
def test_every_identity_field_changes_the_identity(field: str) -> None:
    assert Manifest.of({field: 1}, unknown="").identity != Manifest.of({field: 2}, unknown="").identity


def test_what_a_candidate_may_change_is_no_part_of_the_identity() -> None:
    for name in ("harness.revision", "harness.files_digest", "seeds.seed", "serving.load", "panel.case"):
        assert not BY_NAME[name].identity


def test_two_unknowns_are_not_shown_equal() -> None:
    a, b = (
        Manifest.of({"model.name": "m", "engine.name": "x"}, unknown="?"),
        Manifest.of({"model.name": "m"}, unknown="?"),
    )
    found = {pair.field.name: pair.difference for pair in compare(a, b)}
    assert found["model.name"] is Difference.EQUAL
    assert found["engine.name"] is Difference.NOT_SHOWN
    assert found["engine.kernels"] is Difference.NOT_SHOWN


def test_a_declared_difference_is_known_on_both_sides() -> None:
    a = Manifest.of({"sampling.temperature": 0, "engine.name": "x", "model.name": {"a": 1, "b": 2}}, unknown="?")
    b = Manifest.of({"sampling.temperature": 1, "model.name": {"b": 2, "a": 1.0}}, unknown="?")
    assert [pair.field.name for pair in declared_differences(a, b)] == ["sampling.temperature"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "not a manifest"),
        ({}, "no schema harnesslab.manifest/1"),
        ({"schema": "harnesslab.manifest/2"}, "harnesslab.manifest/2, which this version doesn't know"),
        ({"schema": "harnesslab.manifest/01"}, "no schema harnesslab.manifest/1"),
        ({"schema": SCHEMA, "modle": {}}, "modle: not a section"),
        ({"schema": SCHEMA, "model": []}, "model: not a section"),
        ({"schema": SCHEMA, "model": {"nmae": {"unknown": "?"}}}, r"model\.nmae: not a manifest field"),
        ({"schema": SCHEMA, "model": {"name": "m"}}, r"model\.name: neither a value"),
        ({"schema": SCHEMA, "model": {"name": {"value": 1}}}, r"model\.name: neither a value"),
        ({"schema": SCHEMA, "model": {"name": {"value": 1, "from": "hearsay"}}}, "unknown provenance 'hearsay'"),
        ({"schema": SCHEMA, "model": {"name": {"value": 1, "from": "probed", "note": ""}}}, "neither a value"),
    ],
)
def test_a_damaged_manifest_is_refused_by_name(document: Any, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Manifest.from_json(document)


def test_a_field_that_a_manifest_leaves_out_is_unknown() -> None:
    assert Manifest.from_json({"schema": SCHEMA})["model.name"] == Unknown("not stated by the manifest")


def test_the_document_has_every_field_in_its_section() -> None:
    document = Manifest.of({}, unknown="?").to_json()
    assert canonical_bytes(document).count(b'"unknown":"?"') == len(FIELDS)
