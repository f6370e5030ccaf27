"""Relations as perturbations of other frameworks."""
