"""Measures of generated pictures: FID, IS, KID, R-precision."""
