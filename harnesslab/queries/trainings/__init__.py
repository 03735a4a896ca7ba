"""Trainings and their iterations, and the evidence that a proposer is given."""
