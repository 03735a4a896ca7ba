"""Adapters between foreign bytes and core values: one module per format, pure of Django.

`inputs` names what is read and bounds it, `registry` picks the importer by the shape of the content,
`conversation` turns a chat transcript into events for the formats that hold one, `bundle` writes and verifies
our own export.
"""
