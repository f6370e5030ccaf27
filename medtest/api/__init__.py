"""Calls to models over an API: many at once, none lost or paid twice, without exposing keys or pictures."""
