"""What a worker does when a job waits: one module a kind of job, found by the table in `jobs`."""
