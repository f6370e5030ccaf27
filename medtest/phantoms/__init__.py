"""Synthetic images that replace clinical ones, with ground truth known by construction."""
