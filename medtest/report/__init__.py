"""Tables → what people read: an HTML page for each system, one that compares them, and what the terminal shows."""
