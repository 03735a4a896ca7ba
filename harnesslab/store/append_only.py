"""The triggers that make events and chunks append-only.

Django rebuilds a SQLite table to change it, which drops its triggers silently: a migration that alters one of
these tables must call `create_triggers` again, and a test asserts that they exist after every migration.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

TABLES = ("store_event", "store_chunk")
# not store_looseevent: packing deletes its rows, and until then their seals, which are in store_event, show a change

# 20 is `KEY_SHIFT`, written out since triggers live in the database: another number needs a migration
_PURGED = "SELECT 1 FROM store_purge WHERE rollout_id = OLD.key >> 20"
_CREATE = {
    "sqlite": (
        (
            "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} "
            "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        ),
        "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT EXISTS (" + _PURGED + ") "
        "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END",
        # REPLACE deletes a row without firing delete triggers, unless recursive_triggers is on
        (
            "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            "WHEN EXISTS (SELECT 1 FROM {table} WHERE key = NEW.key) "
            "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        ),
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger AS $$ BEGIN "
        "IF TG_OP = 'DELETE' AND EXISTS (" + _PURGED + ") THEN RETURN OLD; END IF; "
        "RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'restrict_violation'; END $$ LANGUAGE plpgsql",
        (
            "CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION {table}_append_only()"
        ),
    ),
}
_DROP = {
    "sqlite": tuple(f"DROP TRIGGER IF EXISTS {{table}}_no_{verb}" for verb in ("update", "delete", "replace")),
    "postgresql": ("DROP TRIGGER IF EXISTS {table}_append_only ON {table}",),
}
_LIST = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
}


def create_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers, replacing any that are there."""
    drop_triggers(connection)
    _run(connection, _CREATE)


def drop_triggers(connection: BaseDatabaseWrapper) -> None:
    """Drop the triggers; tests that flush the database do so and create them again."""
    _run(connection, _DROP)


def existing_triggers(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the names of the triggers on the append-only tables."""
    with connection.cursor() as cursor:
        cursor.execute(_LIST[connection.vendor])
        return {name for (name,) in cursor.fetchall() if name.startswith(TABLES)}


def _run(connection: BaseDatabaseWrapper, statements: dict[str, tuple[str, ...]]) -> None:
    with connection.cursor() as cursor:
        for table in TABLES:
            for statement in statements[connection.vendor]:
                cursor.execute(statement.format(table=table))
