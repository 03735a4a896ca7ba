"""HTML: a folder or module a noun; views parse, call one function, and render `templates/NOUN`."""
