"""Stored answers and the ledger of calls."""
