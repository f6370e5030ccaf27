"""Made CT volumes of the upper abdomen, with a liver whose shape, outline and variability are known."""
