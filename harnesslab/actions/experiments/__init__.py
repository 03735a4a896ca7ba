"""Experiments: as sources state them, as they are measured here, certified, and decided."""
