"""A server on loopback whose faults are switchable."""
