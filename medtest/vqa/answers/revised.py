"""An answer that takes back what it said: where what counts begins.

"At first glance a gastroscopy, but the haustra show that it is a colonoscopy": what stands before the "but" was not
meant. The same for a question put to oneself ("Grey? No, white.") and for "wait", "actually", "correction".
"""

from __future__ import annotations

import re

_FIRST_THOUGHT = (
    r"(?:at first(?: (?:glance|sight|look))?|initially|on first (?:glance|sight|look|impression)"
    r"|my first (?:impression"
    r"|thought|guess)|i (?:was going to say|would have said|was tempted to say)|(?:one|you) (?:might|could"
    r"|may) think|could be mistaken for"
    r"|might (?:look|seem) like|i (?:first|initially|originally) (?:thought|assumed|believed)"
    r"|auf den ersten blick|zun\u00e4chst"
    r"|a primera vista|al principio|\u00e0 premi\u00e8re vue|au premier abord|\u4e4d\u4e00\u770b|\u4e4d\u770b)"
)
_TURN = (
    r"(?:but|however|yet|although|though|on closer (?:inspection|look\w*)|(?:when )?looking (?:more closely"
    r"|again|closer)|aber|jedoch|pero|sin embargo|mais|cependant|\u4f46)"
)
_TAKEN_BACK = re.compile(
    rf"\b{_FIRST_THOUGHT}[^.!?\n]{{0,120}}?[,;.]?\s*\b{_TURN}\b"
    rf"|{_FIRST_THOUGHT}[^.!?\n]{{0,120}}[.!]\s*{_TURN}\b"
    r"|(?:\A|[.!?,;\n]|\s-)\s*(?:no,\s*)?(?:wait|scratch that|correction|let me correct (?:that|myself)"
    r"|on second thoughts?|(?:sorry|oops|hmm),?\s*(?:wait|no|actually|i meant?))\b\s*[,:.!-]*"
    r"|(?:[.!?\n]|\s-)\s*(?:no,\s*)?actually\b\s*,?"
    r"|\bbut (?:it |this |that )?(?:is|was|it's) (?:actually|really|in fact|just|only|more likely|merely)\b"
    r"|\b(?:before|beforehand|previously|formerly|earlier|originally|prior to|used to be|had been)\b[^.!?\n]{0,120}?"
    r"\b(?:(?<!right )now|currently|at present|but only)\b|\bof the (?:original|initial|former"
    r"|previous)\b[^.,!?\n]{0,60},"
    r"|\?\s*(?=(?:no|nope|nein|non)\s*[,.:;-])"
)
_EXCEPT = re.compile(
    r"(?:\b(?:no|not|none|nothing|without)\b|n't\b)[^.;!?\n]{0,90}?"
    r"\b(?:besides|except(?:ing)?(?: for)?|other than|apart from|aside from)\b"
)
_VERDICT = re.compile(
    r"(?:\A|[.!?;,\n)]|\s-)\s*(?:(?:in )?conclusion|verdict|result|final(?: (?:answer|verdict|result))?"
    r"|summary|(?:so|hence|therefore|thus)"
    r"(?= ?:))\s*:\s*|(?:->|=>|\u2192|\u21d2)\s*|\b(?:the )?best (?:fit|match|answer|description) (?:is"
    r"|would be)\b\s*:?"
)
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
