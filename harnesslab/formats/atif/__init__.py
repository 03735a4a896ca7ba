"""ATIF trajectories, alone or inside a Harbor trial."""
