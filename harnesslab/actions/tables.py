"""The tables themselves: made and brought up to date."""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from harnesslab.core.errors import Conflict
from harnesslab.store.locks import held


def migrate() -> bool:
    """Bring the tables up to date; returns whether anything had to be done."""
    if not _behind():
        return False
    with held("migrate"):
        if _behind():  # still, after another process had its turn
            call_command("migrate", interactive=False, verbosity=0)
    return True


def ready_tables() -> None:
    """Make the tables of an embedded database if they aren't there; raises `Conflict` for those of a server."""
    if connection.vendor == "sqlite":
        migrate()
    elif _behind():
        raise Conflict("the tables are not up to date", where="the database", hint="run: harnesslab prepare")


def _behind() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
