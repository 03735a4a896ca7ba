"""What runs inside a sandbox, of the standard library alone: the sandbox shows it to Python as files of their own."""
