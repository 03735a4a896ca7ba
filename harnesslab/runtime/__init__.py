"""What talks to the world while a rollout runs: one folder a neighbour.

`driver` runs one rollout boundary by boundary, `engines` are model servers, `sandboxes` the places for commands,
`gateway` the HTTP endpoint that agents take for their model server, `training` a harness's git repository, `mirror`
the client of an MLflow server, `demonstration` a project of our own. They are handed what they need and never touch
the store.
"""
