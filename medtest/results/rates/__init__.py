"""Error finding rates and the tables made of them."""
