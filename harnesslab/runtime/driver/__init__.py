"""Drives one rollout: asks at every boundary what the plan says, and records what came of it.

`conversation` is the line protocol with the harness, `boundaries` the model, the tools, the user and the clock,
each live, served or failing; `episode` the state they share; `loop` the whole run; `verifier` the verdict;
`conditions` the manifest. Knows ports alone: engines, sandboxes and the recorder are handed in.
"""
