"""Readers that look at pictures and say what they show."""
