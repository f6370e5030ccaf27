"""The part of the image generator that draws medical pictures.

It reads prompts by its own rules and words (``nouns.yaml``), which are shared neither with the language of orders
(:mod:`medtest.language.orders`) nor with the picture readers. Only the renderers are shared (``ordered`` in
:mod:`medtest.phantoms.chest`, :mod:`medtest.phantoms.questions` and :mod:`medtest.phantoms.capsule`).
"""

REVISION = 1
"""Incremented whenever the same settings would draw other pictures."""
