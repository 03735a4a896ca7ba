"""What changes a harness: its git repository, and who proposes a change.

`repository` writes commits, refs and fast-forwards; `proposers` ask for one bounded change.
"""
