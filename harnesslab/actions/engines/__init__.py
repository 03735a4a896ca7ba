"""Registering engines; the tickets (`slots`, `guarded`) that keep all workers at or below an engine's ceiling."""
