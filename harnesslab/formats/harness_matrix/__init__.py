"""Matrices of agents × scenarios × trials."""
