"""Trainings: begun, stopped, taken up again, and moved forwards epoch by epoch."""
