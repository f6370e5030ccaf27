"""Changes of a prompt's own words: one phrase is exchanged, taken out or put in, and all other words stay.

Each change tries the texts that it could lead to, from the smallest, and takes the first whose reading differs from the
source's by exactly the change of the pool, with the same denials. Command, style tags and sizes thus stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from medtest.core.errors import NotApplicable
from medtest.core.scenes import Absence, NamedTriple, Pool, Prompt
from medtest.language.captions import inflection
from medtest.language.captions.controlled.lexicon import lexicon
from medtest.language.captions.controlled.tagging import Tagger
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.controlled.tokens import words
from medtest.language.captions.controlled.verbs import VERBS
from medtest.language.captions.reading.content import is_clinical
from medtest.language.captions.reading.reader import read_prompt
from medtest.language.captions.reading.result import REFUSING, PromptReading, ReadingReason
from medtest.language.captions.vocabulary import vg150
from medtest.relations.prompts.fitting import is_removable

Facts = tuple[Counter[tuple[str, int | None, tuple[str, ...]]], Counter[NamedTriple], frozenset[Absence]]
"""Entities, triples and denials of a reading, in terms of classes."""
_MOST_WORDS = 60
"""Longest prompt of which a phrase is taken out."""
_STARTS = frozenset((*VERBS, Tag.PREPOSITION, Tag.AND, Tag.COMMA, Tag.RELATIVE, Tag.COPULA, Tag.CONNECTOR))
_RELATIVE = re.compile(r"\s+(?:that|which|who|whose)\b", re.I)
_NO_SENTENCE = frozenset(("with", "along", "of", "for", "to", "from", "part of", "belonging to", "made of", "against"))
"""Predicates that make no natural sentence of their own."""
_SIDES = {"left of": "to the left of", "right of": "to the right of", "on back of": "on the back of"}


def exchanged(prompt: Prompt, pool: Pool, index: int, name: str) -> str:
    """Return the words with another noun for an entity.

    Args:
        prompt: The prompt, in its author's words.
        pool: Its pool after the change.
        index: The entity.
        name: Its new class.

    Raises:
        NotApplicable: No text is read as the changed pool.
    """
    _refuse_medical(prompt)
    old, count = prompt.pool.entities[index].name, prompt.pool.entities[index].count
    texts = _with_noun(prompt.text, old, name, many=count is not None and count > 1)
    return _first(prompt, pool, texts, f"its words for {old!r} cannot be exchanged", exchanges=True)


def shortened(prompt: Prompt, pool: Pool) -> str:
    """Return the words without the phrase of a relation; see :func:`exchanged`."""
    return _first(prompt, pool, _without_phrase(prompt.text), "no phrase of its words tells of this relation alone")


def extended(prompt: Prompt, pool: Pool) -> str:
    """Return the words with a phrase for the last triple of a pool; see :func:`exchanged`."""
    _refuse_medical(prompt)
    triple = pool.triples[-1]
    new = triple.subject == len(pool.entities) - 1
    anchor = pool.entities[triple.object if new else triple.subject].name
    noun = pool.entities[-1].name
    texts = _with_phrase(prompt.text, anchor, triple.predicate, _one(noun), is_subject=new)
    return _first(prompt, pool, texts, f"its words have no place for {triple.predicate!r} {noun!r}")


def _refuse_medical(prompt: Prompt) -> None:
    """Refuse everyday classes in a prompt of medicine; :mod:`medtest.relations.prompts.orders` changes such prompts."""
    if is_clinical(prompt.text):
        raise NotApplicable("it puts everyday things into prompts; this one is of medicine")


def _first(prompt: Prompt, pool: Pool, texts: Iterator[str], problem: str, *, exchanges: bool = False) -> str:
    source = _read(prompt.text)
    change = _change(_facts(prompt.pool), _facts(pool))
    source_form = (source.command, source.tags, tuple(words for _, words in source.measures))
    for text in texts:
        reading = _read(text)
        form = (reading.command, reading.tags, tuple(words for _, words in reading.measures))
        # a prompt that a person reviewed may be in doubt, but the change adds none
        if form != source_form or not REFUSING.intersection(reading.reasons).issubset(source.reasons):
            continue
        if not _is_grammatical(text):
            continue
        if exchanges and _is_person_of(prompt.text) and _gender(prompt.text) != _gender(text):
            continue
        if _change(_facts(source.content), _facts(reading.content)) == change:
            return text
    raise NotApplicable(f"the own words of the prompt cannot be changed: {problem}")


_ENDS_OPEN = frozenset((Tag.COPULA, Tag.ARTICLE, Tag.THE, Tag.PREPOSITION, Tag.AND, Tag.AUXILIARY, Tag.TO, Tag.HIS))
_DANGLES = re.compile(
    r"\b(?:in front|on top|next|filled|covered|full|made|topped|surrounded|on the side)\s*(?:[.,!?]|$)"
    r"|\b(?:while|when|that|which|who)\s+\w+\s*(?:[.,!?]|$)|\b(?:couple|group|pair|bunch|row) of (?:an?|the)\b",
    re.I,
)
"""Ends of a phrase of which a part was taken out."""
_ONE = re.compile(
    r"(?:^|[.!?]\s+|\s(?:of|draw|paint|show|generate|create)\s+)an?\s(?:(?!\band\b)[^,.])*?\s(?:are|were|have)\s", re.I
)


def _is_grammatical(text: str) -> bool:
    """Return True if no sentence ends in the middle, and none has one thing as the subject of "are"."""
    tokens = Tagger(words(text)).tags()
    ends = [before for before, token in zip(tokens, tokens[1:], strict=False) if token.tag is Tag.STOP]
    if tokens and tokens[-1].tag is not Tag.STOP:
        ends.append(tokens[-1])
    for before, token in zip(tokens, tokens[1:], strict=False):
        plain = token.tag is Tag.NOUN and token.word not in inflection.PLURAL_ONLY
        if before.tag is Tag.ARTICLE and plain and inflection.is_plural(token.word):
            return False  # "a boys"
    acts = False
    for token, following in zip(tokens, tokens[1:], strict=False):
        if token.tag is Tag.AND and following.tag in VERBS and not acts:
            return False  # "a dog and wearing a hat"
        if token.tag is Tag.ING and following.tag is Tag.ING:
            return False  # "a dog sitting wearing a hat"
        acts = token.tag is not Tag.STOP and (acts or token.tag in VERBS or token.tag is Tag.COPULA)
    if any(token.tag in _ENDS_OPEN for token in ends) or _DANGLES.search(text) or _ONE.search(text):
        return False
    return not _disagrees(tokens)


def _disagrees(tokens: list[Token]) -> bool:
    """Return True if a sentence's one thing, in the singular, is followed by a verb in the plural ("a man walk")."""
    opens, subject = True, False
    for token in tokens:
        if token.tag is Tag.STOP:
            opens, subject = True, False
        elif opens and token.tag is Tag.ARTICLE:
            opens, subject = False, True
        elif token.tag in (Tag.AND, Tag.COMMA, Tag.RELATIVE):
            subject = False
        elif subject and token.tag is Tag.FINITE:
            if "VB" in lexicon().verb(token.word) and "VZ" not in lexicon().verb(token.word):
                return True
            subject = False
    return False


def _gender(text: str) -> tuple[int, int]:
    """Return the numbers of words for women and for men, with pronouns among them."""
    spelt = re.findall(r"[a-z]+", text.lower())
    return tuple(sum(word in gender for word in spelt) for gender in (_FEMALE, _MALE))  # type: ignore[return-value]


def _is_person_of(text: str) -> bool:
    """Return True if a text has a pronoun that tells whether a person is a woman or a man."""
    return not {"her", "his", "she", "he", "him", "hers"}.isdisjoint(re.findall(r"[a-z]+", text.lower()))


_FEMALE = frozenset(("woman", "women", "girl", "girls", "lady", "ladies", "she", "her", "hers", "mother", "wife"))
_MALE = frozenset(("man", "men", "boy", "boys", "guy", "guys", "he", "him", "his", "father", "husband"))


@lru_cache(maxsize=4096)
def _read(text: str) -> PromptReading:
    return read_prompt(text)


@lru_cache(maxsize=4096)
def _facts(pool: Pool) -> Facts:
    def of_class(name: str) -> str:
        return vg150().class_of(name) or name

    names = [of_class(entity.name) for entity in pool.entities]
    entities = Counter(
        (name, entity.count, tuple(sorted(entity.attributes)))
        for name, entity in zip(names, pool.entities, strict=True)
    )
    merged = vg150().merged_predicates
    triples = Counter(
        (names[triple.subject], merged.get(triple.predicate, triple.predicate), names[triple.object])
        for triple in pool.triples
    )
    denied: set[Absence] = {(of_class(name),) for name in pool.absent}
    denied |= {(of_class(absence[0]), absence[1], *map(of_class, absence[2:])) for absence in pool.denied}
    return entities, triples, frozenset(denied)


def _change(before: Facts, after: Facts) -> tuple[object, ...]:
    (entities, triples, denied), (new_entities, new_triples, new_denied) = before, after
    return (
        *(new_entities - entities, entities - new_entities),
        *(new_triples - triples, triples - new_triples),
        *(new_denied - denied, denied - new_denied),
    )


# ---------------------------------------------------------------------------------------------------------- candidates


def _with_noun(text: str, old: str, name: str, *, many: bool) -> Iterator[str]:
    """Yield texts with another noun in one place where a class is named, then in all."""
    places = [(match, is_plural or many) for match, is_plural in _named(text, old)]
    for place in places:
        yield _put(text, [place], name)
    if len(places) > 1:
        yield _put(text, places, name)


def _named(text: str, name: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield the places where a text names a class, also in misspelt words, and whether they are plural."""
    vocabulary = vg150()
    singulars = {word.lower() for word in (*vocabulary.synonyms(name), name)}
    plurals = {vocabulary.plural(word) for word in singulars}
    for reason, detail in _read(text).details:
        if reason is ReadingReason.MISSPELT:
            wrong, _, right = detail.partition(": ")
            if right in singulars:
                singulars.add(wrong.lower())
            elif right in plurals:
                plurals.add(wrong.lower())
    forms = sorted(singulars | plurals, key=len, reverse=True)
    pattern = re.compile(
        rf"(?<!\w)(?P<before>(?:an?|one)\s+(?:[\w-]+\s+)??)?(?P<word>{'|'.join(map(re.escape, forms))})(?!\w)", re.I
    )
    for match in pattern.finditer(text):
        word = match["word"].lower()
        yield match, word in plurals and word not in singulars


def _put(text: str, places: list[tuple[re.Match[str], bool]], name: str) -> str:
    for match, is_plural in reversed(places):
        before, old = match["before"] or "", match["word"]
        new = vg150().plural(name) if is_plural else name
        if not is_plural and name in inflection.PLURAL_ONLY and before:
            new = f"pair of {name}"
        if old[0].isupper() and (len(old) == 1 or not old.isupper()):
            new = new[0].upper() + new[1:]
        elif text.isupper():
            new = new.upper()
        text = text[: match.start()] + _article_before(before, new) + new + text[match.end() :]
    return text


def _article_before(before: str, noun: str) -> str:
    """Return the text before a noun, with the article that the noun takes if nothing is in between."""
    article = before.strip()
    if article.lower() not in ("a", "an"):
        return before
    right = inflection.article(noun)
    right = right.capitalize() if article[0].isupper() else right
    return right + before[len(article) :]


def _without_phrase(text: str) -> Iterator[str]:
    """Yield texts without a run of words that begins as a phrase does, the shortest first."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    if len(spans) > _MOST_WORDS:
        return
    spelt = [text[begin:end] for begin, end in spans]
    starts = [at for at in range(1, len(spans)) if _opens_phrase(" ".join(spelt[at : at + 4]))]
    ends = range(1, len(spans) + 1)
    runs = sorted((last - first, first, last) for first in starts for last in ends if last > first + 1)
    for _, first, last in runs:
        left, right = text[: spans[first][0]].rstrip(), text[spans[last - 1][1] :]
        stop = re.search(r"[.,!?]*$", text[spans[first][0] : spans[last - 1][1]])
        mark = stop.group() if stop and not left.endswith((",", ".")) else ""
        if last < len(spans) and not (mark or _opens_phrase(" ".join(spelt[last : last + 4]))):
            continue
        if not is_removable(left, text[spans[first][0] : spans[last - 1][1]], right):
            continue
        yield f"{left}{mark}{right}" if last < len(spans) or mark else f"{left.rstrip(',')}{right}"


@lru_cache(maxsize=4096)
def _opens_phrase(text: str) -> bool:
    """Return True if a phrase may begin with some words: a verb, a preposition, "and", "that"."""
    tokens = Tagger(words(f"a dog {text}")).tags()
    return len(tokens) > 2 and tokens[2].tag in _STARTS and tokens[2].tag not in OPENS_NOUN


def _with_phrase(text: str, anchor: str, predicate: str, noun: str, *, is_subject: bool) -> Iterator[str]:
    """Yield texts with a new relation in a separate sentence; with style tags first behind the anchor."""
    phrase = _SIDES.get(predicate, predicate)
    finite = predicate if predicate in ("has", "says") else ""
    body, tags = _before_tags(text)
    for match, _ in _named(text, anchor) if tags and not is_subject and not finite else ():
        if _RELATIVE.match(text, match.end()):
            continue  # "a sheep near a fence that is not wearing a collar"
        yield f"{text[: match.end()]} {phrase} {noun}{text[match.end() :]}"
    if predicate in _NO_SENTENCE:
        return
    end = "" if body.rstrip().endswith((".", "!", "?")) else "."
    for match, is_plural in _named(text, anchor):
        verb = finite or f"is {phrase}"
        if is_plural and not is_subject:
            verb = {"has": "have", "says": "say"}.get(finite) or f"are {phrase}"
        ends = (noun, f"the {match['word'].lower()}")[:: 1 if is_subject else -1]
        sentence = f"{ends[0]} {verb} {ends[1]}"
        yield f"{body.rstrip().rstrip(',')}{end} {sentence[0].upper()}{sentence[1:]}{'' if tags else '.'}{tags}"


def _before_tags(text: str) -> tuple[str, str]:
    """Return a text before its first style tag or denial, and the rest from the comma on."""
    first = next(iter(_read(text).tags), "")
    at = text.find(first) if first else -1
    comma = text.rfind(",", 0, at) if at > 0 else -1
    denial = re.search(r",\s+(?:but\s+)?(?:no|without|not)\b", text, re.I)
    if denial and (comma < 0 or denial.start() < comma):
        comma = denial.start()
    return (text, "") if comma < 0 else (text[:comma], text[comma:])


def _one(noun: str) -> str:
    """Return a noun with the article of one thing, none if it is not counted."""
    if not vg150().counted(noun):
        return noun
    pair = "pair of " if noun.split()[-1] in inflection.PLURAL_ONLY else ""
    return f"{inflection.article(pair or noun)} {pair}{noun}"
