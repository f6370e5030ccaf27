"""Single calls to models: requests, transport, retries."""
