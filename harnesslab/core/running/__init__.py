"""What it takes to run a rollout, or to run it again.

`cases` and `panels`, the `recipe`, a `rerun`'s plan, the `record` that answers are served from, and the `ports`
behind which an engine and a sandbox stand.
"""
