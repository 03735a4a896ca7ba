"""Triggers that make events and chunks append-only, on SQLite and PostgreSQL.

An UPDATE, a DELETE or a REPLACE fails, also in raw SQL, but for rollouts named in `store_purge`. Out of reach:
PostgreSQL's TRUNCATE and the tables' owner, who may drop a trigger.
"""

from django.db import migrations

from harnesslab.store.append_only import create_triggers, drop_triggers


class Migration(migrations.Migration):
    dependencies = [("store", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: create_triggers(editor.connection),
            lambda apps, editor: drop_triggers(editor.connection),
        )
    ]
