"""Published checkpoints and medtest's own weights files, for networks of every kind."""
