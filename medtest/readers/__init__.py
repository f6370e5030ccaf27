"""Readers: what systems answered → the facts that oracles and tables go by."""
