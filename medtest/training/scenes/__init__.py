"""Training of the reader of drawn scenes."""
