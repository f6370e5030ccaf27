"""Checkpoints as people have them and weights files of ours: what networks of every kind share."""
