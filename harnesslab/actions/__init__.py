"""Writes: one verb, one transaction each."""
