"""Relations whose strength is solved for each seed, so that different relations are compared at equal similarity."""
