"""The role of the compose file can't get around the append-only triggers; needs PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

SQL = Path(__file__).resolve().parents[1] / "docker" / "app-role.sql"
ADDRESS = os.environ.get("DATABASE_URL", "")
PARTS = [
    "ALTER TABLE kept DISABLE TRIGGER ALL",
    "DROP TRIGGER no_change ON kept",
    "DROP TABLE kept",
    "TRUNCATE kept",
    "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RETURN NULL; END $$ LANGUAGE plpgsql",
    "SET session_replication_role = replica",
]


@pytest.fixture
def app_role() -> Iterator[psycopg.Connection]:
    """A connection as the application's role to a database with one append-only table."""
    with psycopg.connect(ADDRESS, autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS harnesslab_role_trial")
        owner.execute("CREATE DATABASE harnesslab_role_trial")
    with psycopg.connect(ADDRESS, dbname="harnesslab_role_trial", autocommit=True) as trial:
        trial.execute(SQL.read_text())
        trial.execute("CREATE TABLE kept (id serial PRIMARY KEY, text text)")
        trial.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$"
        )
        trial.execute("CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON kept FOR EACH ROW EXECUTE FUNCTION refuse()")
        trial.execute("SET ROLE harnesslab_app")
        yield trial
    with psycopg.connect(ADDRESS, autocommit=True) as owner:
        owner.execute("DROP DATABASE harnesslab_role_trial")


if ADDRESS.startswith("postgres"):  # the stage on SQLite has no roles to speak of

    def test_it_writes_but_never_around_the_triggers(app_role: psycopg.Connection) -> None:
        app_role.execute("INSERT INTO kept (text) VALUES ('first')")
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            app_role.execute("DELETE FROM kept")
        for statement in PARTS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app_role.execute(statement)
        assert app_role.execute("SELECT text FROM kept").fetchall() == [("first",)]
