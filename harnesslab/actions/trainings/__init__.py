"""Trainings: begun, stopped, taken up again, and moved forwards iteration by iteration."""
