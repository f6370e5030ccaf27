"""Labelled images from folders, tables and the archives of public sets."""
