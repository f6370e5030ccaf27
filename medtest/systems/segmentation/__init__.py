"""Segmentation under test: published networks and their compact ones, organs in volumes, what moves in films."""
