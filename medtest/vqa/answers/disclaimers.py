"""What an answer says that is no answer: refusals, disclaimers, advice to see a doctor, phrases of politeness.

Each is a part of a sentence, and only that part is set aside. A refusal is an answer of which no part gives a value:
"There are no polyps. For an accurate assessment, please consult a gastroenterologist." is none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from medtest.vqa.answers.scope import clauses
from medtest.vqa.answers.states import refusals

_EXPERT = re.compile(
    r"(?<![^\W\d_])(?:doctors?|physicians?|gastroenterologists?|endoscopists?|colonoscopists?|pathologists?|radiologists?|surgeons?"
    r"|specialists?|clinicians?|experts?|(?:health\s?care|medical) (?:\w+ )?(?:professionals?|providers?|teams?)"
    r"|professionals?|(?:fach)?\u00e4rzt\w*|(?:fach)?arzt\w*|m\u00e9dicos?|especialistas?|m\u00e9decins?|sp\u00e9cialistes?"
    r"|\u533b\u751f|\u533b\u5e08)(?![^\W\d_])"
)
_ASIDE = re.compile(
    r"\A\W*whether\b"
    r"|\b(?:if you (?:have|are|feel|need|want|wish|would|notice|experience)|let me know|(?:i )?hope (?:this"
    r"|that|it) helps?"
    r"|(?:is there )?anything else|feel free|thank(?:s| you)|upload|(?:medical|clinical) (?:advice|decision|use|device)"
    r"|(?:as|i'm|i am) (?:only |just )?(?:an? )?(?:ai|artificial|large language|language|automated)\b"
    r"|ai-generated|disclaimer|correlat(?:e|ion)\b|for informational|educational|diagnostic (?:use|purpose)\w*"
    r"|substitute for|not a diagnosis|(?:may|can|could|might) (?:contain|make|be) (?:\w+ )?(?:errors|mistakes"
    r"|wrong|mistaken)|consult)\b"
)
_ADVISES = re.compile(
    r"\b(?:consult|see|ask|contact|talk|speak|turn|refer|seek|please|should|must|would|could|may|might|can|will|only|job|needs?|never"
    r"|advi[sc]\w+|recommend\w*|confirm\w*|verif\w+|review\w*|check\w*|discuss\w*|evaluat\w+|interpret\w*|assess\w*|replace"
    r"|for (?:your|an?|the)|judge?ment|diagnos\w+|opinion|not|no|bitte|wenden|nur|consulte|opini\u00f3n|pas)\b|n't\b"
)
_GENERAL = re.compile(
    r"\A\W*(?:(?:such|these|most|some|many|colon|colorectal|gastric|flat|small|large|medical) )?(?:polyps"
    r"|ulcers|adenomas|lesions"
    r"|conditions|findings|abnormalities|landmarks|instruments|diseases)\b[^.;\n]{0,60}?\b(?:are|can|may|must|should|need)\b"
)
"""What is said of things in general, which a refusal mostly goes with: "Polyps are growths on the lining"."""
_CUT = re.compile(
    r"\A\W*(?:while|although|though|even though|as|since|because|given|without|due to|unfortunately|sadly|sorry)\b"
    r"[^,]*(?P<behind>,)"
    r"|(?P<before>,)\s*(?:so|and|but|which|as|hence|therefore|thus|i|i'm|i'd|we|it|it's|this|they|there|its|or"
    r"|maybe|perhaps|probably|possibly|likely|presumably|about|around|approximately|roughly|estimated|my|\d+)\b"
    r"|(?P<blank>\s)(?:and|so|as) (?:i|we|i'm|i'd)\b|(?P<dash>\s)-\s|(?P<opening>\()|(?P<closing>\))"
)

_OPENING = re.compile(
    r"[\W_]*(?:(?:sure|certainly|of course|absolutely|ok|okay|great question|hello|hi)(?: thing)?\s*!"
    r"|(?:based on|according to|as far as|judging (?:from|by)|looking at|from what|in my|to my|from (?:the|this))\b"
    r"[^,.;:\n]{0,60}[,:])(?=\s*\w)"
)
_TURN = re.compile(r"[\W_]*(?:but|however|still|yet|nevertheless|nonetheless|that (?:being )?said)\b")


def opening(low: str) -> int:
    """Return where a text begins behind phrases that say nothing: "Sure! Based on the image, ...", "..., but"."""
    end = 0
    for pattern in (_TURN, _OPENING, _OPENING):
        found = pattern.match(low, end)
        end = end if found is None else found.end()
    return end


@lru_cache(maxsize=64)
def unsaid(low: str) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Return first character and end of every part of a text that is no answer, and whether one is a refusal.

    Args:
        low: The plain text in lower case.
    """
    parts = _parts(low)
    refused = [bool(refusals(low[first:last])) for first, last in parts]
    some = any(refused)
    return tuple(
        (first, last)
        for (first, last), no in zip(parts, refused, strict=True)
        if no
        or _ASIDE.search(low[first:last])
        or _advice(low[first:last])
        or (some and _GENERAL.match(low[first:last]))
    ), some


def _advice(part: str) -> bool:
    return _EXPERT.search(part) is not None and _ADVISES.search(part) is not None


def _parts(low: str) -> list[tuple[int, int]]:
    """Return the parts of a text that stand or fall by themselves: clauses, cut where a new subject begins."""
    parts: list[tuple[int, int]] = []
    for first, last in clauses(low):
        begin = first
        for one in _CUT.finditer(low[first:last]):
            cut = first + (one.end() if one["behind"] or one["closing"] else one.start(str(one.lastgroup)))
            if low[begin:cut].strip():
                parts.append((begin, cut))
                begin = cut
        parts.append((begin, last))
    return parts
