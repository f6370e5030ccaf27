"""MONAI bundles: read as data, checked, and built from an allow-list of harmless classes."""
