"""MONAI bundles: read as data, checked, and made from lists of harmless classes."""
