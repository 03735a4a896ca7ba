"""The copy of a project on an MLflow server; `mlflow` is imported here only, and only where a worker mirrors."""
