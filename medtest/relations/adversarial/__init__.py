"""Relations that attack: their pixels are made on a system, from its scores or their gradients."""
