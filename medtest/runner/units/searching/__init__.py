"""Search in a worker: each query depends on the answers to earlier ones."""
