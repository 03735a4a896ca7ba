"""Whether a candidate is promoted.

`promotion` holds the criteria, `secondary` the rewards that break a tie, `grounds` what is kept beside a decision;
`decision_reasons` reads every reason out of a decision's document, and `decision_words` puts kinds, decisions and
reasons into words.
"""
