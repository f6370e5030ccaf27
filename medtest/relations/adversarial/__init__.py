"""Adversarial relations, which craft pixels on a system from its scores or gradients."""
