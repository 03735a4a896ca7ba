"""How every importer reads.

Inputs and archives within bounds, the shape of a unit looked at once (`sniff`), values whose types can't be trusted,
and conversations turned into events.
"""
