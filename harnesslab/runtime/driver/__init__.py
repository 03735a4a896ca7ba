"""Drives one rollout: asks at every boundary what the plan says, and records what came of it.

`run` is the whole of it, `episode` the state that all share (clock and budgets too). `loop` drives loop harnesses
over the line protocol of `conversation`, asking `model`, `tools` and `others` (user, clock, sub-agents); `command`
and `agent` drive any agent program through the gateway; `verifier` gives the verdict, `conditions` the manifest,
`audit` runs recorded commands again. Knows ports alone: engines, sandboxes and the recorder are handed in.
"""
