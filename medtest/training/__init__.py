"""Training of the bundled networks, their evaluation and release; behind ``medtest train``."""
