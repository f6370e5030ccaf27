"""Options and recipes of training."""
