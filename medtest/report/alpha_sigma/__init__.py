"""Figures, LaTeX tables and report sections for (α,σ) robustness curves."""
