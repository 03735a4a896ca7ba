"""Experiments: list, one, asked for, side by side, by efficiency, and as a grid."""
