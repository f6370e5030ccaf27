"""Torch networks as systems: layers, preprocessing, probes."""
