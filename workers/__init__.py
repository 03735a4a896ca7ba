"""What runs beside the web server: the Celery application, its tasks, and the sweeper; entry points only.

A GPU worker starts here: `python -m celery --app workers.app worker --pool=solo --queues=gpu`. What it does lies in
`harnesslab/runtime`.
"""
