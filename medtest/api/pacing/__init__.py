"""When the next call may leave: calls in flight, a server's quotas, what its refusals and its slowness tell."""
