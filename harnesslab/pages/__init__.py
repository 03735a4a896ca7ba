"""HTML: one module per page family; views parse, call one function, and render."""
