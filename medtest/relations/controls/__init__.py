"""Controls: relations that remove what an answer should rest on, and their shams."""
