"""Records → tables: error-finding rates, curves, (α,σ), factors, gates. Pure functions; no model is needed."""
