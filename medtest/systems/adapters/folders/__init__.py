"""Folders of answers made elsewhere: maps, labels, images, regions, found by the case's address."""
