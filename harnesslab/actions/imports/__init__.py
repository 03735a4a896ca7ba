"""Importing: a unit becomes rollouts, each in its own transaction; large uploads are spooled."""
