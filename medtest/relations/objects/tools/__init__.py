"""Instruments that the code draws: their shapes, the way they enter the field, and the light on them."""
