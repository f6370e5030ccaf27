"""Segmenters of organs in volumes: one with a learnt shape prior, one that grows regions from clicks."""
