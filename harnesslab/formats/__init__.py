"""Foreign bytes to core values and back; pure of Django.

`reading` is what every importer reads with. A format is a module, or a folder where it has several; `registry` picks
the importer by the shape of the content, `discovery` turns paths into units, with `companions` for what lies around
them, `unsupported` names what is recognised and refused, `native` is our own JSON lines, `bundle` our export.
"""
