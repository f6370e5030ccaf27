"""Commands about data sets."""
