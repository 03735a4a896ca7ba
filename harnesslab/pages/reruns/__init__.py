"""Asking for reruns, what came of them, and regression cases."""
