"""What must repeat: a contract is a level, scrub rules and a comparator.

`content` says what of an event counts, `scrub` what is removed first, `comparators` make digests of the rest,
`trace_reader` reads a trace by those digests, `requests` names a model call by what was asked.
"""
