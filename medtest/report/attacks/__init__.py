"""Report sections on attacks, for one system and for several."""
