"""What no worker can run is view-only, whatever its source would allow."""

from typing import Any

from django.db import migrations
from django.db.models import F, TextField, Value
from django.db.models.functions import Concat

UNBOUND = "harness: none is bound to it that a worker can run"


def withhold(apps: Any, schema_editor: Any) -> None:
    """Label the rollouts without a recipe by what can be done with them; what their sources state stays in words."""
    unbound = apps.get_model("store", "Rollout").objects.filter(recipe=b"").exclude(grade="view-only")
    unbound.filter(missing="").update(grade="view-only", missing=UNBOUND)
    said = Concat(Value(f"{UNBOUND}; "), F("missing"), output_field=TextField())
    unbound.update(grade="view-only", missing=said)


class Migration(migrations.Migration):
    dependencies = [("store", "0009_crash_origin")]

    operations = [migrations.RunPython(withhold, migrations.RunPython.noop)]
