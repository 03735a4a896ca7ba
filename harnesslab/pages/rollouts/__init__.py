"""The list of rollouts, one rollout, its manifest and bundle; requests grouped by what was asked."""
