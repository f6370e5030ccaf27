"""Matter that covers tissue: stool and blood, lit by the scene."""
