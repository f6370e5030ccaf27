"""Quality over scales of uncertainty: curves, (α,σ) and related measures, paired tests."""
