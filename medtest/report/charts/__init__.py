"""Charts of reports as inline SVG and tables: heat maps, bars, curves."""
