from django.db import migrations, models


class Migration(migrations.Migration):
    """Projects that are there were named by somebody, or hold what named none: they take no place."""

    dependencies = [("store", "0010_replayability")]

    operations = [
        migrations.AddField(model_name="project", name="origin", field=models.CharField(blank=True, max_length=16)),
    ]
