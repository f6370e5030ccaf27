"""The simulated laboratory draws: a prompt in, a picture out, with errors as it is set to.

It reads prompts by rules and words of its own and lays scenes out by its own; it shares neither with what reads
captions (:mod:`medtest.language.captions`) nor with what looks at pictures (:mod:`medtest.readers`), and a test holds
that. Only the brush is the house's (:mod:`medtest.phantoms.scenes`). It stands for no product that exists.
"""

REVISION = 1
"""Raised whenever the same settings would draw other pictures."""
