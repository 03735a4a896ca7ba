"""harness-training runs: the experiment, its decision, and one rollout a case."""
