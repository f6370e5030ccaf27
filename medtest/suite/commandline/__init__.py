"""Command line: typed keys and values, Hydra's grammar, composed configuration, and the command as shown."""
