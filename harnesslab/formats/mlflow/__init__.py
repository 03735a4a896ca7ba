"""MLflow: runs and traces in, spans out."""
