"""Pacing of calls: concurrency, server quotas, and limits learned from refusals and latency."""
