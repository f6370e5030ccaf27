"""The simulated laboratory's image generator: a prompt in, a picture out, with configurable errors.

It parses prompts and lays out scenes by its own rules and words, which are shared neither with the caption parser
(:mod:`medtest.language.captions`) nor with the picture readers (:mod:`medtest.readers`), as a test enforces. Only the
renderer is shared (:mod:`medtest.phantoms.scenes`). It represents no existing product.
"""

REVISION = 1
"""Incremented whenever the same settings would draw other pictures."""
