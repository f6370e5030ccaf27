"""Finished runs beside one another: which are named, what differs between them, and the page that shows it."""
