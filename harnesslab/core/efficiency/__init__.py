"""Where the tokens and the time of an experiment went.

`factors` splits tokens per solve into tokens a call, calls a step and steps a solve, `spending` says what they were
spent on and what that cost, `survival` how long rollouts lasted, `cycle` where their time went, `faults` what went
wrong and what mended it.
"""
