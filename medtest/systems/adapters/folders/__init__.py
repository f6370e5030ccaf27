"""Folders of stored answers: maps, labels, images and regions, found by the case's address."""
