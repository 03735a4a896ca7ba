"""The pure domain: values in, values out; no Django, no clock, no randomness, no disk, no network.

Rooms, each importing only those before it: `trace` (what happened) and `conditions` (under which conditions),
`contracts` (what must repeat), `comparing` (where two traces part, and why) and `running` (what it takes to run one),
`measuring` (what rollouts add up to), then `efficiency`, `deciding` and `training`. `canonical` is the one module
that hashes, `errors` the domain's errors, `documents` reads values back, `seeds` derives them, `natural` bounds whole
numbers from outside.
"""
