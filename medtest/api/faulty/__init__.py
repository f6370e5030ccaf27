"""Loopback server with configurable faults."""
