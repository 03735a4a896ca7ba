"""Inspect logs, JSON or archive: samples, events, messages and scores."""
