"""What rollouts add up to.

`experiments` are stated or measured as wholes; `cells` are their parts, one a case and trial. `trace_statistics` counts
one trace, with `askings` for what became of each request for an action. `statistics` are rates with intervals,
`solve_rates` those of an experiment; `transitions` and `paired` set two experiments side by side, `recurrence` all of a
project. `attribution` says whether a change explains a flip, `certification` whether a case's environment repeats.
`matrix` is harness-matrix's own summary.
"""
