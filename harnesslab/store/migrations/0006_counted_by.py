from django.db import migrations, models


class Migration(migrations.Migration):
    """Rows that are there were counted by version 1 of the counter; `harnesslab recount` brings them to the current."""

    dependencies = [("store", "0005_iterations")]

    operations = [
        migrations.AddField(model_name="rollout", name="counted_by", field=models.SmallIntegerField(default=1)),
        migrations.AddIndex(
            model_name="rollout", index=models.Index(fields=["counted_by"], name="rollout_counted_by")
        ),
    ]
