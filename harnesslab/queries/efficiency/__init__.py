"""The efficiency page: its numbers, tables and words."""
