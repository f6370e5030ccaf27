"""Cases made again: replay, export, crafted follow-ups."""
