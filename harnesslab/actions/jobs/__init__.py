"""A job's life as compare-and-set changes of state (`lifecycle`), and the lease that a worker holds."""
