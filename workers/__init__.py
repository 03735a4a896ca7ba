"""What runs outside the web process: Celery tasks, engines, sandboxes, the recording gateway."""
