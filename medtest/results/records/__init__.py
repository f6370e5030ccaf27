"""Input of tables: the records in a folder, their status, and the suite's display settings."""
