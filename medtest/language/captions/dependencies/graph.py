"""Dependency graph of a caption in one scheme, independent of the parser.

Stanza's models produce Universal Dependencies, spaCy's English ones CLEAR (ClearNLP's labels): a preposition is a child
of its noun in the former and its noun's parent in the latter. Here a noun has its prepositions (``cases``) and the word
to which they attach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class Word:
    """Word of a caption.

    Attributes:
        text: In lower case.
        lemma: In lower case.
        tag: Universal part of speech (``NOUN``, ``VERB``, ``ADP`` …).
        relation: Relation to its head, in its parser's scheme; ``root`` for none.
        head: Index of its head; its own index for the root.
        gerund: True for a verb in -ing.
        cases: Prepositions that attach it to its head, in order.
    """

    text: str
    lemma: str
    tag: str
    relation: str
    head: int
    gerund: bool = False
    cases: list[str] = field(default_factory=list)


SUBJECT, OBJECT, PLACE, CLAUSE = "subject", "object", "place", "clause"
AGENT, OWNER, LIST, VERB = "agent", "owner", "list", "verb"
"""Relations of the common scheme.

They are subject and object of a verb; noun under a preposition; verb that describes a noun; agent of a passive verb;
owner; list member; verb under a verb.
"""
_ONE_SCHEME = {
    "nsubj": SUBJECT,
    "nsubj:pass": SUBJECT,
    "nsubjpass": SUBJECT,
    "obj": OBJECT,
    "dobj": OBJECT,
    "obl": PLACE,
    "nmod": PLACE,
    "obl:agent": AGENT,
    "acl": CLAUSE,
    "acl:relcl": CLAUSE,
    "relcl": CLAUSE,
    "poss": OWNER,
    "nmod:poss": OWNER,
    "conj": LIST,
    "xcomp": VERB,
    "advcl": VERB,
    "pcomp": VERB,
}


def in_one_scheme(words: Sequence[Word]) -> list[Word]:
    """Return a copy of the words with relations of the common scheme, and nouns with their prepositions."""
    converted = [replace(word, cases=[]) for word in words]
    for index, word in enumerate(words):
        if word.relation == "pobj":
            _lift(words, converted, index)
        elif word.relation in ("obl", "nmod", "obl:agent", "obl:tmod", "nmod:unmarked", "obl:unmarked"):
            converted[index].cases = _cases(words, index)
    for index, word in enumerate(converted):
        if word.relation not in (PLACE, AGENT):
            converted[index].relation = _ONE_SCHEME.get(word.relation, word.relation)
    return converted


def _cases(words: Sequence[Word], index: int) -> list[str]:
    """Return a noun's prepositions in Universal Dependencies, including fixed multiword expressions."""
    marks = [at for at, word in enumerate(words) if word.head == index and word.relation == "case" and at != index]
    fixed = [at for at, word in enumerate(words) if word.head in marks and word.relation in ("fixed", "advmod")]
    return [words[at].text for at in sorted({*marks, *fixed})]


def _lift(words: Sequence[Word], converted: list[Word], index: int) -> None:
    """Attach a preposition's object to the preposition's head: from CLEAR to the common scheme."""
    at = words[index].head
    cases = [words[at].text]
    agent = words[at].relation == "agent"
    up = words[at].head
    while up != at and (words[up].tag == "ADP" or _is_part(words, up)):
        cases.insert(0, words[up].text)
        at, up = up, words[up].head
    previous = at - 1
    if (
        previous >= 0
        and words[previous].text in ("next", "close", "left", "right", "together", "along")
        and words[previous].head == up
    ):
        cases.insert(0, words[previous].text)
    converted[index].cases, converted[index].head, converted[index].relation = cases, up, AGENT if agent else PLACE


_PARTS = frozenset(("next", "close", "out", "inside", "outside", "away", "back"))


def _is_part(words: Sequence[Word], at: int) -> bool:
    """Return True if an adverb is the first word of a preposition ("next to", "out of")."""
    return words[at].tag in ("ADV", "SCONJ") and words[at].text in _PARTS
