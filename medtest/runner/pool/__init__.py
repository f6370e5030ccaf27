"""Worker processes: number, start, tasks, messages, and recovery from failures."""
