"""Asking for reruns and concluding them; ordering rollouts from the workers."""
