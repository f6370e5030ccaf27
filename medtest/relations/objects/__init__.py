"""Cut-out objects: libraries, layouts and the relations that paste them."""
