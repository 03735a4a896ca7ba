"""A project told by its experiments: the line of baselines, one experiment closely, and the learning memo."""
