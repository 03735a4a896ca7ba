"""The pure domain: values in, values out; no Django, no clock, no randomness, no disk, no network.

Read in this order: canonical (bytes and digests), events and trace (what happened), seals (that nobody
changed it), manifest (under which conditions), contract, renaming, scrub and comparators (what counts as
equal), alignment and diagnosis (where two traces part, and why), statistics (how often). Then, for experiments:
anatomy and cells (what a rollout adds up to), paired, secondary and promotion (whether a change helped), identity,
certification and attribution (whether that can be said), efficiency and spending (what it cost).
"""
