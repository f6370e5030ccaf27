"""What a user's folders of images hold: files, pairs, masks, metadata; and seeds of images with masks."""
