"""Models of MLflow's registry: which version is meant, its files on this machine, and the model as a system."""
