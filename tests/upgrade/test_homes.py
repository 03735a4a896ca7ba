"""What any earlier version stored opens today: brought up to date, whole, on every page, and rerun from its record.

On SQLite the home as it was, on PostgreSQL the dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from backports import zstd

from tests.upgrade.versions import PLACES, VERSIONS, name_of, opened, unpack

pytestmark = [pytest.mark.serial, pytest.mark.timeout(400)]
ADDRESS = os.environ.get("DATABASE_URL", "")
DATABASE = "harnesslab_upgrade_trial"


@pytest.fixture(scope="module", params=VERSIONS, ids=name_of)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What opening a version's home, or its dump on PostgreSQL, came to."""
    version: Path = request.param
    home = unpack(version / "home.tar.zst", tmp_path_factory.mktemp("home"))
    if not ADDRESS.startswith("postgres"):
        yield opened(home, PLACES["sqlite"])
        return
    (home / "harnesslab.sqlite3").unlink()
    with psycopg.connect(ADDRESS, autocommit=True) as owner:
        owner.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        owner.execute(f"CREATE DATABASE {DATABASE}")
        address = urlsplit(ADDRESS)._replace(path=f"/{DATABASE}").geturl()
        restore(version / "postgres.sql.zst", address)
        yield opened(home, PLACES["postgresql"], DATABASE_URL=address)
        owner.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def restore(dump: Path, address: str) -> None:
    """Run a dump's statements, without the commands of psql."""
    lines = zstd.decompress(dump.read_bytes()).decode().splitlines(keepends=True)
    with psycopg.connect(address) as database:
        database.execute("".join(line for line in lines if not line.startswith("\\")).encode())


def test_every_rollout_is_the_one_that_was_sealed(report: Any) -> None:
    assert report["rollouts"] > 70
    assert report["wrong rollouts"] == []


def test_every_manifest_has_the_digest_that_it_is_stored_under(report: Any) -> None:
    assert report["manifests"] > 20
    assert report["wrong manifests"] == []


def test_certificates_hold_for_the_identity_that_they_were_given_for(report: Any) -> None:
    assert report["certificates"] > 10
    assert report["wrong certificates"] == []


def test_every_kept_path_is_the_one_that_its_contract_gives(report: Any) -> None:
    assert report["paths"] > 50
    assert report["wrong paths"] == []


def test_a_training_that_was_stopped_can_go_on_with_its_patches(report: Any) -> None:
    assert report["trainings"] > 0
    assert report["lost patches"] == []


def test_every_page_opens(report: Any) -> None:
    assert report["pages"] > 300
    assert report["failed pages"] == {}
    assert report["views that were not opened"] == []


def test_people_s_work_is_still_there(report: Any) -> None:
    missing = [name for name, count in report["rows"].items() if not count and name not in NOT_FILLED]
    assert missing == []


def test_a_live_rollout_is_rerun_from_its_record(report: Any) -> None:
    assert report["rerun"]["ended"]
    assert report["rerun"]["same"] == [True], report["rerun"]["sentence"]


NOT_FILLED = {"Blob", "EngineTicket", "LooseEvent", "Mirror", "Mirrored"}
"""Tables that are empty where nothing is large, nothing runs and no MLflow server was there."""
