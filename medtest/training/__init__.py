"""How the bundled networks are trained, scored and put into the package; behind ``medtest train``."""
