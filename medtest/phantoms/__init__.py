"""Procedural images that stand in for clinical ones when none are at hand, with the truth known by construction."""
