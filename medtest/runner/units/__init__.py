"""Work on one unit in a worker: one seed, all its follow-ups, all systems."""
