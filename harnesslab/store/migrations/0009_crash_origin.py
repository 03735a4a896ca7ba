"""A crash says what it is owed to, in a column of its own, since rates depend on it."""

import json
from typing import Any

from backports import zstd
from django.db import migrations, models

ORIGINS = ("harness", "workspace", "environment", "unknown")


def fill(apps: Any, schema_editor: Any) -> None:
    """Take the origin of each stored crash from its facts; one that states none is unknown."""
    rollouts = apps.get_model("store", "Rollout").objects
    for pk, facts in rollouts.filter(outcome="crash").values_list("pk", "facts").iterator():
        document = json.loads(zstd.decompress(bytes(facts))) if facts else {}
        stated = document.get("crash_origin") if isinstance(document, dict) else None
        rollouts.filter(pk=pk).update(crash_origin=stated if stated in ORIGINS else "unknown")


class Migration(migrations.Migration):
    dependencies = [("store", "0008_jobs_of_engines")]

    operations = [
        migrations.AddField(
            model_name="rollout", name="crash_origin", field=models.CharField(blank=True, max_length=12)
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=False),
        migrations.AddConstraint(
            model_name="rollout",
            constraint=models.CheckConstraint(
                condition=models.Q(("crash_origin__in", ["", *ORIGINS])), name="rollout_crash_origin_known"
            ),
        ),
    ]
