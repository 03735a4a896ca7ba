"""The only tables. `models` has one module a noun; QuerySets carry the words that queries and actions speak."""
