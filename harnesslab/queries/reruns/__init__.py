"""Reruns: what one would cost (`previews`), what a worker needs (`job_specs`), what came of it; regression cases."""
