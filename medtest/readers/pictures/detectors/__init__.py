"""Object detectors as readers of pictures."""
