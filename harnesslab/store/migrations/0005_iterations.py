from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0004_experiments")]

    operations = [
        migrations.RemoveConstraint(model_name="epoch", name="epoch_unique"),
        migrations.RemoveConstraint(model_name="epoch", name="epoch_state_known"),
        migrations.RenameModel(old_name="Epoch", new_name="Iteration"),
        migrations.RenameField(model_name="memo", old_name="epoch", new_name="iteration"),
        migrations.AlterField(
            model_name="iteration",
            name="training",
            field=models.ForeignKey(
                on_delete=models.deletion.CASCADE, related_name="iterations", to="store.training"
            ),
        ),
        migrations.AlterField(
            model_name="iteration",
            name="candidate",
            field=models.ForeignKey(
                null=True, on_delete=models.deletion.SET_NULL, related_name="iterations", to="store.experiment"
            ),
        ),
        migrations.AddConstraint(
            model_name="iteration",
            constraint=models.UniqueConstraint(fields=("training", "number"), name="iteration_unique"),
        ),
        migrations.AddConstraint(
            model_name="iteration",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            "baseline",
                            "certifying",
                            "proposing",
                            "measuring",
                            "promoted",
                            "rejected",
                            "invalid",
                            "skipped",
                        ],
                    )
                ),
                name="iteration_state_known",
            ),
        ),
    ]
