"""A document is read, digested and compared by the version it was written under, also when there is a newer one."""

from __future__ import annotations

import pytest

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.conditions.fields import FIELDS, Field
from harnesslab.core.conditions.identity import identity_differences, identity_digest
from harnesslab.core.conditions.manifest import Difference, Manifest, Unknown, compare
from harnesslab.core.conditions.schemas import MANIFESTS, ManifestSchema, of_experiment, of_rollout
from harnesslab.core.errors import InvalidValue
from harnesslab.core.versions import Versions

FURTHER = Field("network", "region", "Region", "Where it was served from.", identity=True)
GREW = (*FIELDS, FURTHER)
WITH_IDENTITY = ManifestSchema(2, GREW, of_rollout(2, GREW), of_experiment(2, GREW))
BESIDE = ManifestSchema(2, GREW, MANIFESTS.current.identity, MANIFESTS.current.experiment_identity)
KNOWN: dict[str, JSON] = {"model.name": "m", "sampling.temperature": 0.5, "panel.case_digest": "c"}


def made(**more: str) -> Manifest:
    """Return a manifest of the newest version."""
    return Manifest.of(KNOWN | {name.replace("__", "."): value for name, value in more.items()}, unknown="?")


@pytest.fixture
def first() -> Manifest:
    """A manifest of before there was a second version."""
    return made()


@pytest.fixture
def grown(first: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second version, with one field more that belongs to the identity."""
    monkeypatch.setitem(MANIFESTS.rules, 2, WITH_IDENTITY)


@pytest.mark.usefixtures("grown")
def test_a_stored_document_keeps_its_digests_when_a_field_is_added(first: Manifest) -> None:
    read = Manifest.from_json(parse(first.canonical()))
    assert (read.schema.number, read.canonical()) == (1, first.canonical())
    assert (read.digest, read.identity, read.completeness) == (first.digest, first.identity, (3, len(FIELDS)))
    assert identity_digest({"a": read}) == identity_digest({"a": first})
    assert FURTHER.name not in [field.name for field, _ in read.unknowns()]


@pytest.mark.usefixtures("grown")
def test_a_document_of_the_newer_version_states_its_own_fields_and_number(first: Manifest) -> None:
    second = made(network__region="eu")
    assert second.to_json()["schema"] == "harnesslab.manifest/2"
    read = Manifest.from_json(parse(second.canonical()))
    assert (read, read.digest, read.identity) == (second, second.digest, second.identity)
    assert second.completeness == (4, len(FIELDS) + 1)
    assert second.identity not in (first.identity, made(network__region="us").identity)


@pytest.mark.usefixtures("grown")
def test_an_older_document_can_not_hold_a_newer_field() -> None:
    with pytest.raises(InvalidValue, match=r"network: not a section"):
        Manifest.from_json({"schema": "harnesslab.manifest/1", "network": {"region": {"unknown": "?"}}})


@pytest.mark.usefixtures("grown")
@pytest.mark.parametrize("turned", [False, True])
def test_two_versions_are_compared_and_what_one_lacks_is_not_stated_by_it(first: Manifest, *, turned: bool) -> None:
    second = made(network__region="eu")
    pairs = {pair.field.name: pair for pair in compare(*((second, first) if turned else (first, second)))}
    assert set(pairs) == {field.name for field in GREW}
    assert pairs["model.name"].difference is Difference.EQUAL
    assert pairs[FURTHER.name].difference is Difference.NOT_SHOWN
    lacking = pairs[FURTHER.name].b if turned else pairs[FURTHER.name].a
    assert lacking == Unknown("not stated by manifest/1")
    assert FURTHER.name in [row.field.name for row in identity_differences([("a", first, second)])]


@pytest.mark.usefixtures("grown")
def test_an_experiment_over_both_versions_has_the_older_one_s_identity(first: Manifest) -> None:
    second = made(network__region="eu")
    assert identity_digest({"a": first, "b": second}) == identity_digest({"a": first})
    assert identity_digest({"b": second}) != identity_digest({"a": first})


def test_a_version_whose_identity_is_the_one_before_leaves_identities_equal(
    first: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MANIFESTS.rules, 2, BESIDE)
    second = made(network__region="eu")
    assert second.digest != first.digest
    assert (second.identity, identity_digest({"a": second})) == (first.identity, identity_digest({"a": first}))


def test_a_name_of_no_version_is_an_accident(first: Manifest) -> None:
    with pytest.raises(KeyError):
        first["model.nmae"]


VERSIONS = Versions("harnesslab.thing", {1: "one", 3: "three"})


def test_each_number_has_its_own_rules() -> None:
    assert [VERSIONS.of(f"harnesslab.thing/{number}") for number in (1, 3)] == ["one", "three"]
    assert (VERSIONS.newest, VERSIONS.current) == (3, "three")


def test_a_newer_number_is_refused_with_what_would_help() -> None:
    with pytest.raises(InvalidValue) as refusal:
        VERSIONS.of("harnesslab.thing/4")
    assert refusal.value.sentence == (
        "written as harnesslab.thing/4, which this version doesn't know "
        "(it reads up to harnesslab.thing/3; a newer HarnessLab reads it)"
    )


@pytest.mark.parametrize(
    "schema", [None, 1, "", "harnesslab.thing", "harnesslab.thing/x", "other/1", "harnesslab.thing/0"]
)
def test_what_states_no_version_is_refused(schema: object) -> None:
    with pytest.raises(InvalidValue, match=r"no schema harnesslab\.thing/3"):
        VERSIONS.of(schema)  # type: ignore[arg-type]
