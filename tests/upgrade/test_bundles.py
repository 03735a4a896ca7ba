"""A bundle that any earlier version exported verifies offline, and is imported with its digests and seals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harnesslab.actions.imports.importing import import_units
from harnesslab.cli import register
from harnesslab.cli.main import cli
from harnesslab.core.canonical import bytes_digest, parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.formats import bundle
from harnesslab.formats.reading.inputs import InputFile, Unit
from harnesslab.queries.bundles import bundle_of
from harnesslab.queries.rollouts.consistency import check_consistency
from harnesslab.queries.rollouts.manifests import load_manifest, manifest_bytes
from harnesslab.store.models import Rollout
from tests.formats.test_bundle import SIGNER, members
from tests.upgrade.versions import BUNDLES, VERSIONS, name_of

register(cli)
every_bundle = pytest.mark.parametrize("place", BUNDLES, ids=name_of)


def test_every_version_left_bundles_of_each_kind() -> None:
    assert VERSIONS
    for version in VERSIONS:
        names = {place.stem.split("-")[0] for place in (version / "bundles").glob("*.zip")}
        assert names >= {"imported", "live", "rerun", "demonstration"}, version


@every_bundle
def test_it_verifies_without_a_database(place: Path) -> None:
    result = CliRunner().invoke(cli, ["verify", str(place)])
    assert result.exit_code == 0, result.output
    exported = place.with_suffix(".manifest.json").read_bytes()
    assert f"manifest {bytes_digest(exported)}" in result.output
    assert Manifest.from_json(parse(exported)).canonical() == exported


@every_bundle
@pytest.mark.django_db
def test_it_is_imported_with_its_digests_and_seals(place: Path) -> None:
    data = place.read_bytes()
    sealed = json.loads(members(data)["bundle.json"])
    (result,) = import_units([Unit(place.name, {place.name: InputFile.of_bytes(place.name, data)})])
    assert (result.status, result.skipped) == ("imported", [])
    rollout = Rollout.objects.get()
    assert bytes(rollout.head or b"").hex() == sealed["head"]
    assert rollout.events == sealed["events"]
    assert manifest_bytes(rollout.manifest_id) == place.with_suffix(".manifest.json").read_bytes()
    assert load_manifest(rollout.manifest_id).digest == sealed["manifest"]
    assert check_consistency(rollout.pk).consistent
    again = bundle.verify(bundle_of(rollout.pk, SIGNER))
    assert (again.manifest, again.head) == (sealed["manifest"], sealed["head"])
