"""A recording endpoint for one rollout: an agent of any make speaks to it as to its model server.

`server` is the HTTP side, `chat`, `responses` and `anthropic` the dialects, `asked` what they share. What a request
becomes is decided by a `Boundary` that whoever drives the rollout hands in; nothing here asks a model or stores.
"""
