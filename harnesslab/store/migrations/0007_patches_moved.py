"""The demonstration's patches moved with its code: trainings that take them from there find them where they are."""

import json
import re
from pathlib import Path
from typing import Any

from backports import zstd
from django.db import migrations

PATCHES = Path(__file__).resolve().parents[2] / "runtime" / "demonstration" / "patches"
MOVED = re.compile(r'"folder":"[^"]*/workers/demonstration/patches"')


def follow(apps: Any, schema_editor: Any) -> None:
    """Rewrite the folder in plans that name the earlier one."""
    place = f'"folder":{json.dumps(str(PATCHES), ensure_ascii=False)}'
    for training in apps.get_model("store", "Training").objects.only("plan").iterator():
        plan = zstd.decompress(bytes(training.plan)).decode()
        moved = MOVED.sub(lambda _: place, plan)
        if moved != plan:
            training.plan = zstd.compress(moved.encode(), 6)
            training.save(update_fields=["plan"])


class Migration(migrations.Migration):
    dependencies = [("store", "0006_counted_by")]

    operations = [migrations.RunPython(follow, migrations.RunPython.noop)]
