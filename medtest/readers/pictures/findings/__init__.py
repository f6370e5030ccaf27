"""Readers of ordered medical pictures: findings with side, number and size, by classifiers and segmentation systems."""
