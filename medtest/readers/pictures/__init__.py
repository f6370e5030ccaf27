"""Readers that look at pictures and describe what they show."""
