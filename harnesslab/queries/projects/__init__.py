"""The projects home, and what a project is bound to."""
