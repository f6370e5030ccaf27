"""Training of segmentation networks from scratch: pairs, changes, losses."""
