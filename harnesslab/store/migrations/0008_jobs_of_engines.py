from django.db import migrations, models


class Migration(migrations.Migration):
    """Jobs that already wait name no engine: they run as before, held by the tickets of their requests alone."""

    dependencies = [("store", "0007_patches_moved")]

    operations = [
        migrations.AddField(model_name="job", name="engine", field=models.CharField(blank=True, max_length=200)),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("engine", ""), _negated=True), fields=["engine", "state"], name="job_engine_state"
            ),
        ),
    ]
