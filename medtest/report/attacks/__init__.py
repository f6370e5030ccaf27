"""The report's section on attacks, and what sets systems side by side under them."""
