"""Commands that read finished runs."""
