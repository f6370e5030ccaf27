"""JSON Schema of suite files, with which editors complete, explain and check them."""
