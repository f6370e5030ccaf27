"""Asking models over an API: many calls, none lost, none paid twice, keys and pictures shown nowhere."""
