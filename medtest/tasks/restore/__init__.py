"""Task restore: a processed image."""
