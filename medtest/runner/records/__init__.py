"""A run's records: rows, shards, seals, the merged file, and which of them a call asked for."""
