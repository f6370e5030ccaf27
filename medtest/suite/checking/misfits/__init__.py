"""Incompatible parts of a suite, detected before anything is loaded: one module per kind."""
