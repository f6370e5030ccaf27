"""Training of segmentation networks from drawn weights: pairs, changes, losses."""
