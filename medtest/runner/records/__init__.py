"""Records of a run: rows, shards, seals, the merged file, and the records of a call."""
