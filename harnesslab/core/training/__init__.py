"""Training as values.

`training` is what is asked of the loop and the states of it and its iterations, `memo` the notes that a proposer keeps
with what became of every candidate, `story` a project's experiments in order and its baseline as a line of steps.
"""
