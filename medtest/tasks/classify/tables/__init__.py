"""Tables of systems that give labels: accuracy and related measures, classes, flips of sequences, corruption errors."""
