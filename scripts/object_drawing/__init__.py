"""Procedural drawing of the bundled object library; run by ``scripts/draw_objects.py``."""
