"""A caption's dependency graph in one scheme, whichever parser made it.

Stanza's models give Universal Dependencies, spaCy's English ones CLEAR (ClearNLP's labels): a preposition is a child of
its noun in the one and its noun's parent in the other. Here a noun has its prepositions (``cases``) and the word that
they attach it to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Word:
    """A word of a caption.

    Attributes:
        text: In lower case.
        lemma: In lower case.
        tag: Its universal part of speech (``NOUN``, ``VERB``, ``ADP`` …).
        relation: What it is to its head, as its parser says it; ``root`` for none.
        head: Index of its head; its own for none.
        gerund: Whether it ends in -ing as a verb.
        participle: Whether it is a past participle.
        many: Whether it is a plural.
        cases: Prepositions that attach it to its head, as said.
    """

    text: str
    lemma: str
    tag: str
    relation: str
    head: int
    gerund: bool = False
    participle: bool = False
    many: bool = False
    cases: list[str] = field(default_factory=list)


SUBJECT, OBJECT, PLACE, CLAUSE, AGENT, OWNER, LIST, VERB = (
    "subject",
    "object",
    "place",
    "clause",
    "agent",
    "owner",
    "list",
    "verb",
)
"""Relations of one scheme: subject and object of a verb; a noun under a preposition; a verb that describes a noun; who
does a passive verb; whose a thing is; one more of a list; a verb under a verb."""
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
    """Return words with relations of one scheme and nouns with their prepositions; the argument stays as it is."""
    found = [
        Word(one.text, one.lemma, one.tag, one.relation, one.head, one.gerund, one.participle, one.many)
        for one in words
    ]
    for index, one in enumerate(words):
        if one.relation == "pobj":
            _lift(words, found, index)
        elif one.relation in ("obl", "nmod", "obl:agent", "obl:tmod", "nmod:unmarked", "obl:unmarked"):
            found[index].cases = _cases(words, index)
    for index, one in enumerate(found):
        if one.relation not in (PLACE, AGENT):
            found[index].relation = _ONE_SCHEME.get(one.relation, one.relation)
    return found


def _cases(words: Sequence[Word], index: int) -> list[str]:
    """Return a noun's prepositions in Universal Dependencies, with the words that are fixed to them."""
    marks = [at for at, one in enumerate(words) if one.head == index and one.relation == "case" and at != index]
    fixed = [at for at, one in enumerate(words) if one.head in marks and one.relation in ("fixed", "advmod")]
    return [words[at].text for at in sorted({*marks, *fixed})]


def _lift(words: Sequence[Word], found: list[Word], index: int) -> None:
    """Attach a preposition's object to what the preposition is attached to: CLEAR to one scheme."""
    at = words[index].head
    said = [words[at].text]
    agent = words[at].relation == "agent"
    up = words[at].head
    while up != at and (words[up].tag == "ADP" or _is_part(words, up)):
        said.insert(0, words[up].text)
        at, up = up, words[up].head
    before = at - 1
    if (
        before >= 0
        and words[before].text in ("next", "close", "left", "right", "together", "along")
        and words[before].head == up
    ):
        said.insert(0, words[before].text)
    found[index].cases, found[index].head, found[index].relation = said, up, AGENT if agent else PLACE


def _is_part(words: Sequence[Word], at: int) -> bool:
    """Say whether an adverb is the first word of a preposition ("next to", "out of")."""
    return words[at].tag in ("ADV", "SCONJ") and words[at].text in (
        "next",
        "close",
        "out",
        "inside",
        "outside",
        "away",
        "back",
    )
