"""Quality over scales of uncertainty: curves, (α,σ) and its companions, tests of pairs."""
