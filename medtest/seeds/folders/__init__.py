"""The user's image folders: files, pairs, masks, metadata, and seeds of images with masks."""
