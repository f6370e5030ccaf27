"""Synthetic CT volumes of the upper abdomen, with livers of known shape, outline and variability."""
