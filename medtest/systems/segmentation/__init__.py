"""Segmentation networks under test, published and compact."""
