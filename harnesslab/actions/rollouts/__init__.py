"""Writing rollouts: whole (`storing`), or event by event while they run (`recorder`)."""
