"""mini-swe-agent trajectories: their messages as events, and what the run states of itself."""
