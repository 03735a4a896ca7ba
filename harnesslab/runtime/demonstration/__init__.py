"""The demonstration project: a tiny model, a small harness and shell cases, run for real on this machine.

Every trace it makes is genuine: the model samples tokens from its table, the commands run in a folder of their
own, the verifier looks at the files. `model` is the table and its arithmetic, `cases` the tasks, `harness` the
loop, `project` the experiments that are run.
"""
