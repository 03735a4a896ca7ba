"""Writes: one verb, one transaction each; one folder a noun."""
