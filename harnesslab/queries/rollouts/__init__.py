"""Rollouts: the list with its `filters` and `facets`, one with its events and manifest, and requests over all of them.

`trace_readers` is how anything reads a stored trace: chunk by chunk, never the whole for one page.
"""
