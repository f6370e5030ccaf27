"""Reconstruction of cases: replay, export, crafted follow-ups."""
