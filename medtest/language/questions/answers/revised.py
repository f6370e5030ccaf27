"""Start of the relevant part of an answer that retracts a statement.

"At first glance a gastroscopy, but the haustra show that it is a colonoscopy": the part before "but" does not count.
The same holds for self-posed questions ("Grey? No, white.") and for "wait", "actually", "correction".
"""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts

_TEXTS = texts(__file__)
_TAKEN_BACK = re.compile(_TEXTS["taken_back"])
_EXCEPT = re.compile(_TEXTS["except"])
_VERDICT = re.compile(_TEXTS["verdict"])
_HENCE = re.compile(r"(?:\A|[.!?;\n,]|\s-)\s*(?:and )?(?:so|hence|therefore|thus|accordingly|consequently)\b\s*,?\s*")
_SO = re.compile(r",?\s*\b(?:so|therefore|hence|thus|also bleibt|por lo tanto|donc)\b[\s,]+(?=\S)")


def excepted(low: str) -> int:
    """Return the start of the exception to a "no" ("no text besides a date"); 0 without one."""
    match = _EXCEPT.search(low[:2_000])
    return match.end() if match is not None and low[match.end() :].strip(" .,;:!?-\n") else 0


def verdict(low: str) -> int:
    """Return the start of an answer's final result, "Conclusion: ..." or "-> ..."; 0 without one."""
    return _last(_VERDICT, low)


def hence(low: str) -> int:
    """Return the start of the last conclusion in a text, "..., so ..."; 0 without one."""
    return _last(_HENCE, low)


def _last(pattern: re.Pattern[str], low: str) -> int:
    ends = [match.end() for match in pattern.finditer(low[:4_000]) if low[match.end() :].strip(" .,;:!?-\n")]
    return ends[-1] if ends else 0


def revised(low: str) -> int:
    """Return the start of the relevant part of an answer; 0 if nothing is retracted.

    If a conclusion follows the retraction ("one of them is a fold, so 1"), the relevant part begins after its "so".

    Args:
        low: The plain text in lower case.
    """
    ends_of_retractions = [
        match.end() for match in _TAKEN_BACK.finditer(low[:2_000]) if low[match.end() :].strip(" .,;:!?-\n")
    ]
    if not ends_of_retractions:
        return 0
    ends = re.compile(r"[.!?\n]").search(low, ends_of_retractions[-1])
    conclusion = _SO.search(low, ends_of_retractions[-1], len(low) if ends is None else ends.end())
    return ends_of_retractions[-1] if conclusion is None else conclusion.end()
