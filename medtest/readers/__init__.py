"""Readers turn systems' answers into the facts that oracles check and tables count."""
