"""Report section on the inspection of a network."""
