"""Refusals, questions that do not apply, hedging, and a yes or no at the beginning of an answer."""

from __future__ import annotations

import re

from medtest.language.questions.answers.lexicon.texts import texts

_TEXTS = texts(__file__)
_NOT_RELEVANT = re.compile(_TEXTS["not_relevant"])
_DUE = re.compile(_TEXTS["due"])
_TO = _TEXTS["to"]
_DO = (
    _TO
    + r"(?:be\s+)?"
    + _TO
    + r"(?:determine[d]?|tell|assess(?:ed)?|say|provide[d]?|identif(?:y|ied)|identifying|answer(?:ed)?"
    r"|evaluate[d]?|confirm(?:ed)?"
    r"|count(?:ed)?|know|decide[d]?|infer(?:red)?|deduce[d]?|verif(?:y|ied)|recogni[sz]e[d]?|make|made"
    r"|measure[d]?|estimate[d]?|judge[d]?|assist|help|analy[sz]e[d]?|interpret(?:ed)?"
    r"|diagnose[d]?|given?|named?|told|offer|comment|view|process|classif(?:y|ied)|ascertain(?:ed)?|pinpoint|locate|locali[sz]e[d]?"
    r"|describe(?!d)|specif(?:y|ied)|state[d]?|discern(?:ed)?|comply)"
)
_REFUSALS = re.compile(
    rf"\b(?:(?:cannot|can\s?not|can't|could not|couldn't|unable to|not able to|not possible to"
    rf"|impossible to|(?:hard|difficult) to|won't|will not)\s+{_DO}\b"
    r"|(?:can\s?not|can't|could not|couldn't) be (?:\w+ly )?(?!seen|found|detected|noted|observed|recogni"
    r"|identified any|missed"
    r"|overlooked|excluded|ruled|removed|resected|made|visuali|appreciated|any\b|more\b)\w+(?:ed|en|wn|ld|de|ught)\b"
    r"|(?:no idea|unsure|uncertain (?:about|of|whether|how|what|where)|beyond my|i would need|i'd need)\b"
    r"|not (?:be )?(?:determinable|assessable|possible|feasible|ascertainable|answerable|measurable|evaluable)\b"
    r"|(?:not |in)(?:be )?(?:enough|sufficient|adequate)(?: \w+){0,2} to (?:tell|say|judge|determine|know"
    r"|decide|answer|assess|be sure)\b|(?:rather|prefer) not(?: to)? (?:say|answer|tell|comment|guess|judge"
    r"|speculate)\b"
    r"|(?:would not|wouldn't|do not|don't) want to (?:guess|speculate|say|judge)\b|(?:can|could"
    r"|would) only (?:guess|speculate)\b"
    r"|(?:do not|don't|does not|doesn't|lack) (?:have )?the (?:ability|capability|capacity|means|expertise"
    r"|training) to\b"
    r"|(?:does not|doesn't|do not|don't) (?:show|say|reveal|indicate) (?:whether|if)\b"
    r"|\bno way (?:to|of) (?:know|tell|say|judg|determin)\w*|too \w+ (?:and \w+ )?(?:for me )?to (?:say|tell"
    r"|judge|determine|assess|count|measure|answer|see (?:whether|if|how|what|where)|make out)\b"
    r"|(?:would|is|are|will)(?: be)? (?:needed|required|necessary) to (?:say|tell|know|determine|assess"
    r"|classify|answer|decide|be (?:sure|certain)|confirm|establish|measure)\b"
    r"|(?:i am|i'm) (?:not (?:a|your) (?:doctor|physician|medical)|not (?:qualified|allowed|permitted|certain))"
    r"|requires? (?:histolog\w+|a biopsy|patholog\w+|more (?:information|context|images|views))"
    r"|hard to (?:say|tell)|difficult to (?:say|tell)|(?:is|remains) (?:unclear|unknown|uncertain)\b(?! abnormal)"
    r"|(?:does not|doesn't|do not|don't) (?:allow|permit|let|suffice|tell)\b"
    r"|i'?m sorry|i am sorry|i apologi[sz]e|as an ai\b|unable to (?:assess|determine)|not possible\b"
    r"|impossible\b|no \w+ possible\b|(?:i'll|i will|i must|have to|had to) (?:pass|decline|abstain|refrain)\b"
    r"|indeterminate|undetermined|cannot be seen well"
    r"|(?:doesn't|does not|do not) (?:provide|contain|give|offer|have) (?:enough|sufficient)\b"
    r"|insufficient (?:information|quality|detail)|not enough (?:information|detail)|consult (?:a|with"
    r"|your)\b|don't know|do not know|not (?:\w+ly |100 ?% )?(?:sure|certain)"
    r"|(?:can\s?not|can't|not|hard to|impossible to) be (?:\w+ ){0,2}(?:certain|sure|exact|precise"
    r"|definitive)\b|(?:is |remains )?unclear whether"
    r"|no (?:puedo|se puede|es posible)|no soy m\u00e9dico|(?:ich kann|l\u00e4sst sich"
    r"|kann)(?: [^.,;\n]{1,40}?)? (?:nicht|keine? [^.,;\n]{1,40}?)"
    r" (?:be(?:urteil|stimm|antwort)|sagen|er(?:kenn|mittel)|fest|mess|ab)\w*|nicht (?:beurteilbar|bestimmbar"
    r"|m\u00f6glich)"
    r"|ich kann (?:das )?nicht|je ne peux pas|(?:il est )?impossible de|on ne peut pas|il n'est pas possible"
    r"|lo siento|d\u00e9sol\u00e9|tut mir leid|n\u00e3o (?:posso|\u00e9 poss\u00edvel))"
    r"|n't (?:be )?(?:determinable|assessable|possible|feasible|answerable|measurable)\b"
    r"|n't (?:be )?(?:enough|sufficient|adequate)(?: \w+){0,2} to (?:tell|say|judge|determine|know|decide"
    r"|answer|assess)\b"
    r"|\u65e0\u6cd5|\u62b1\u6b49|\u4e0d\u80fd(?:\u786e\u5b9a|\u5224\u65ad)|\u96be\u4ee5(?:\u786e\u5b9a|\u5224\u65ad)"
)
_SEES_NONE = re.compile(r"\b(?:identify|discern|make|locate|recogni[sz]e|pinpoint)\Z")
_ANY = re.compile(r"\s+(?:out\s+)?any\b")
_SURELY = re.compile(_TEXTS["surely"])
_SHORT = re.compile(_TEXTS["short"])
_HEDGES = re.compile(_TEXTS["hedges"])
_LEAD = re.compile(_TEXTS["lead"])
_NOTHING = re.compile(_TEXTS["nothing"])

Span = tuple[int, int]


def not_relevant(low: str) -> tuple[Span, bool] | None:
    """Return the span of a statement that the question does not apply, and whether it blames the picture's quality.

    "Not applicable due to white balance" says nothing about the content of the image and is a refusal.
    """
    match = _NOT_RELEVANT.search(low)
    if match is None:
        return None
    blame = _DUE.match(low[match.end() :])
    return (match.start(), match.end() + (blame.end() if blame else 0)), blame is not None


def refusals(low: str) -> list[Span]:
    """Return the spans of all refusals."""
    return [match.span() for match in _REFUSALS.finditer(low) if not _sees_none(low, match)]


def _sees_none(low: str, match: re.Match[str]) -> bool:
    """Return True if "cannot make out any box" denies a box: the model looked for one and saw none."""
    return bool(_SEES_NONE.search(match[0]) and _ANY.match(low, match.end()) and not _SURELY.search(match[0]))


def hedged(low: str) -> bool:
    """Return True if a text is hedged."""
    return _HEDGES.search(low) is not None


def leading(low: str) -> tuple[bool, Span] | None:
    """Return the yes (True) or no at the beginning of a text, optionally after a label and a colon, and its span."""
    match = _LEAD.match(low)
    if match is None:
        return None
    for group, answer in (("yes", True), ("zh_yes", True), ("no", False), ("zh_no", False)):
        if match[group] is not None:
            return answer, match.span(group)
    return None


def short(low: str) -> tuple[bool, Span] | None:
    """Return the yes (True) or no expressed by a short phrase ("I think so", "unfortunately not"), and its span."""
    match = _SHORT.match(low)
    return None if match is None else (match["yes"] is not None, match.span())


def nothing(low: str) -> Span | None:
    """Return the span of a "none" at the beginning of a text."""
    match = _NOTHING.match(low)
    return (match.end() - len(match[0].lstrip()), match.end()) if match else None
