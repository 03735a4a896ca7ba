"""Trainings and their epochs, and the evidence that a proposer is given."""
