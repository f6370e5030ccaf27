"""Tables of systems that give labels: accuracy and its kin, classes, flips of sequences, corruption errors."""
