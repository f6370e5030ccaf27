"""Worker processes: how many, how they are started, what they are handed, what they say, how they are survived."""
