"""What a worker does with a unit: one seed, all its follow-ups, all systems."""
