"""Error-finding rates and tables derived from them."""
