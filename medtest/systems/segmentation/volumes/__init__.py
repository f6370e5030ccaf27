"""Segmenters of organs in volumes: one with a learned shape prior, one that grows regions from clicks."""
