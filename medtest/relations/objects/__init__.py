"""Cut-outs of objects: libraries, layouts and the relations that paste them."""
