"""What happened: events in order, the payloads they name, their seals, and how they are kept and counted.

Read `events`, `trace`, `seals`, then `packing`. `messages` is the one view over chat dialects, `usage` the one over
token counts; `sent` keeps request bodies byte for byte, `renaming` names generated ids by first use.
"""
