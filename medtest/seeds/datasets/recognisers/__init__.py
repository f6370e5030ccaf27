"""Recognisers, one file for each way in which data sets are packed."""
