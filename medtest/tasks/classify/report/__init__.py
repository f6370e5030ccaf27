"""Report on systems that give labels."""
