"""HarnessLab: what ran, what happened, where two runs part and why, and how often it happens again."""

__version__ = "0.1.0"
