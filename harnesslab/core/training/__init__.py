"""Training as values: its states, the learning memo, and the story of a project's baseline."""
