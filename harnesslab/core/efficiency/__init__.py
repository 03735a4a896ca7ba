"""Where the tokens and the time went: `factors` of tokens per solve, spending, survival, cycle times and faults."""
