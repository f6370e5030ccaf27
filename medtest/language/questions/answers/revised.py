"""An answer that takes back what it said: where what counts begins.

"At first glance a gastroscopy, but the haustra show that it is a colonoscopy": what stands before the "but" was not
meant. The same for a question put to oneself ("Grey? No, white.") and for "wait", "actually", "correction".
"""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts

_TEXTS = texts(__file__)
_FIRST_THOUGHT = _TEXTS["first_thought"]
_TURN = _TEXTS["turn"]
_TAKEN_BACK = re.compile(_TEXTS["taken_back"])
_EXCEPT = re.compile(_TEXTS["except"])
_VERDICT = re.compile(_TEXTS["verdict"])
_HENCE = re.compile(r"(?:\A|[.!?;\n,]|\s-)\s*(?:and )?(?:so|hence|therefore|thus|accordingly|consequently)\b\s*,?\s*")
_SO = re.compile(r",?\s*\b(?:so|therefore|hence|thus|also bleibt|por lo tanto|donc)\b[\s,]+(?=\S)")


def excepted(low: str) -> int:
    """Return where what an answer takes out of its "no" begins ("no text besides a date"); 0 where there is nothing."""
    found = _EXCEPT.search(low[:2_000])
    return found.end() if found is not None and low[found.end() :].strip(" .,;:!?-\n") else 0


def verdict(low: str) -> int:
    """Return where the result begins that an answer ends with, "Conclusion: ..." or "-> ..."; 0 where it names none."""
    return _last(_VERDICT, low)


def hence(low: str) -> int:
    """Return where the last conclusion of a text begins, "..., so ..."; 0 where there is none."""
    return _last(_HENCE, low)


def _last(pattern: re.Pattern[str], low: str) -> int:
    ends = [one.end() for one in pattern.finditer(low[:4_000]) if low[one.end() :].strip(" .,;:!?-\n")]
    return ends[-1] if ends else 0


def revised(low: str) -> int:
    """Return where what an answer means begins; 0 where it takes nothing back.

    Where a conclusion follows what was taken back ("one of them is a fold, so 1"), it begins behind its "so".

    Args:
        low: The plain text in lower case.
    """
    found = [one.end() for one in _TAKEN_BACK.finditer(low[:2_000]) if low[one.end() :].strip(" .,;:!?-\n")]
    if not found:
        return 0
    ends = re.compile(r"[.!?\n]").search(low, found[-1])
    conclusion = _SO.search(low, found[-1], len(low) if ends is None else ends.end())
    return found[-1] if conclusion is None else conclusion.end()
