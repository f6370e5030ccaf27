"""The report on systems that give labels."""
