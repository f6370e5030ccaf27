"""How generators of adversarial perturbations are trained against a system: ``medtest train gap``."""
