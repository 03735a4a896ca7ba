"""What rollouts add up to.

`experiments` are asked for and stated; `cells` are their parts, one a case and trial; `trace_statistics` adds one trace
up. `statistics` are rates with intervals, `solve_rates` those of an experiment; `transitions` and `paired` set two
experiments side by side, `recurrence` all of a project. `attribution` says whether a change explains a flip,
`certification` whether a case's environment repeats. `matrix` is harness-matrix's own summary.
"""
