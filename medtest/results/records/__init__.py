"""What tables start from: records of a folder, what of them counts, and what a suite wants shown."""
