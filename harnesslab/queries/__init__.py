"""Reads: tables to frozen read models, the same for HTML and JSON; one folder a noun."""
