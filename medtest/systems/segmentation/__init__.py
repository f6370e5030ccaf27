"""Segmentation systems: published and compact networks, organs in volumes, motion in films."""
