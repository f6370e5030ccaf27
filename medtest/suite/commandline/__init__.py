"""What is typed: from keys and values to Hydra's grammar, to a composed configuration, and back to a command."""
