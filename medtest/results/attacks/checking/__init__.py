"""Checks on attacks."""
