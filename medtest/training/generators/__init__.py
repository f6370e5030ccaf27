"""Training of generators of adversarial perturbations against a system: ``medtest train gap``."""
