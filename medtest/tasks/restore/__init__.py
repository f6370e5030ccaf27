"""The task restore: a processed image."""
