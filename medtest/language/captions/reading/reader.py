"""Reading of prompts as people write them: what is understood, and what keeps a prompt from being sent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from medtest.core.scenes import Absence, Entity, Pool, Triple, alphabetical
from medtest.language.captions.controlled.lexicon import known_noun, lexicon, mass
from medtest.language.captions.controlled.tagging import Tagger
from medtest.language.captions.controlled.tokens import plain, words
from medtest.language.captions.inflection import singular
from medtest.language.captions.parsers import CaptionParser
from medtest.language.captions.reading.content import (
    content,
    describes,
    in_other_script,
    is_being,
    is_clinical,
    measure_patterns,
    worn,
)
from medtest.language.captions.reading.grammar import ClauseReading
from medtest.language.captions.reading.negation import Denials, without_denials
from medtest.language.captions.reading.result import Measure, PromptReading, ReadingReason
from medtest.language.captions.reading.spelling import correction, is_known
from medtest.language.captions.reading.surface import PromptSurface, surface_of
from medtest.language.captions.vocabulary import vg150

LONGEST = 2_000
"""Most characters of a prompt; longer ones are not read."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_FOREIGN_SHARE = 0.5
_EMPTY_BRACKETS = re.compile(r"[(\[]\s*[)\]]")
_SIGNS = re.compile(r"[()<>=*]|[\u2012-\u2015]")
"""Signs that set words apart or weigh them, which no rule reads."""
_GROUPED = re.compile(r"\d,\d{3}\b")
"""Digits of one number on both sides of a comma, at which parts end."""


def read_prompt(text: str, parser: CaptionParser | None = None) -> PromptReading:
    """Read a prompt.

    Args:
        text: The prompt, as its author wrote it.
        parser: Parser of the content; None for the rules of ``controlled`` with passives. Command, style tags,
            denials, sizes and spelling are handled before any parser.

    Returns:
        The reading. A prompt that is not understood has a reason of
        :data:`~medtest.language.captions.reading.result.REFUSING`; its pool is then a guess or empty.
    """
    return _Reader(text, parser).reading()


@dataclass(slots=True)
class _Found:
    """Reasons and words collected on the way."""

    details: list[tuple[ReadingReason, str]] = field(default_factory=list)

    def add(self, reason: ReadingReason, words: str = "") -> None:
        if (reason, words) not in self.details:
            self.details.append((reason, words))

    @property
    def reasons(self) -> tuple[ReadingReason, ...]:
        present = {reason for reason, _ in self.details}
        return tuple(reason for reason in ReadingReason if reason in present)


class _Reader:
    """Reader of one prompt."""

    def __init__(self, text: str, parser: CaptionParser | None) -> None:
        self.text = text
        self.parser = parser
        self.found = _Found()
        self.medical = is_clinical(text)

    def reading(self) -> PromptReading:
        surface = surface_of(plain_quotes(self.text[:LONGEST]))
        if len(self.text) > LONGEST:
            self.found.add(ReadingReason.UNCLEAR, f"more than {LONGEST:,} characters")
        if surface.command:
            self.found.add(ReadingReason.COMMAND, surface.command)
        for tag in surface.tags:
            self.found.add(ReadingReason.STYLE_TAGS, tag)
        grouped = _GROUPED.search(self.text)
        if grouped:
            self.found.add(ReadingReason.UNCLEAR, grouped.group())
        spelt = [self._measured(part) for part in surface.parts]
        spelt = [(self._spelt(part), sizes) for part, sizes in spelt]
        if self._is_other_language([part for part, _ in spelt]):
            self.found.details = [(ReadingReason.OTHER_LANGUAGE, "")]
            return PromptReading(text=self.text, reasons=self.found.reasons)
        pool, absent, measures = self._content(spelt, surface)
        if not pool.entities:
            self.found.add(ReadingReason.NOTHING_NAMED)
        return PromptReading(
            text=self.text,
            pool=pool,
            command=surface.command,
            tags=surface.tags,
            absent=absent,
            measures=measures,
            reasons=self.found.reasons,
            details=tuple((reason, words) for reason, words in self.found.details if words),
        )

    # --- words ------------------------------------------------------------------------------------------------------

    def _measured(self, part: str) -> tuple[str, list[str]]:
        """Return a part without sizes, grades and scores, and these."""
        sizes: list[str] = []
        for pattern in measure_patterns():
            for match in pattern.finditer(part):
                sizes.append(match.group().strip())
            part = pattern.sub(" ", part)
        part = _EMPTY_BRACKETS.sub(" ", re.sub(r"\bin situ\b", " ", part, flags=re.I))
        sign = _SIGNS.search(part)
        if sign:
            self.found.add(ReadingReason.UNCLEAR, sign.group())
        for size in sizes:
            self.found.add(ReadingReason.MEASURES, size)
        return " ".join(part.split()), sizes

    def _spelt(self, part: str) -> str:
        """Return a part with misspelt words corrected; unknown words stay."""
        part = self._joined(part)

        def put(match: re.Match[str]) -> str:
            word = plain(match.group()).lower()
            base = re.sub(r"['\u2019]s?$", "", word)
            if is_known(base) or is_known(base.replace("'", "")) or base in content()["contracted"]:
                return match.group()
            proper = match.group()[0].isupper() and match.start() > 0 and not part.isupper()
            right = "" if proper or self.medical else correction(base)
            if right:
                self.found.add(ReadingReason.MISSPELT, f"{match.group()}: {right}")
                return right + word[len(base) :]
            self.found.add(ReadingReason.UNKNOWN_WORDS, match.group())
            return match.group()

        return _WORD.sub(put, part)

    def _joined(self, part: str) -> str:
        """Return a part in which two words are one if only the one is a class ("side walk")."""
        vocabulary = vg150()
        spelt = part.split(" ")
        for at in range(len(spelt) - 2, -1, -1):
            first, second = spelt[at], spelt[at + 1].rstrip(".")
            joined = (first + second).lower()
            if min(len(first), len(second)) < 3 or not joined.isalpha() or joined not in vocabulary.nouns:
                continue
            if vocabulary.class_of(f"{first} {second}") in (None, joined):
                self.found.add(ReadingReason.MISSPELT, f"{first} {second}: {joined}")
                spelt[at : at + 2] = [joined + spelt[at + 1][len(second) :]]
        return " ".join(spelt)

    def _is_other_language(self, parts: list[str]) -> bool:
        spelt = [word.lower() for part in parts for word in _WORD.findall(part)]
        if not spelt or in_other_script(self.text):
            return bool(spelt)
        off = [
            wrong_word
            for reason, wrong_word in self.found.details
            if reason in (ReadingReason.UNKNOWN_WORDS, ReadingReason.MISSPELT)
        ]
        strange = len(off) / len(spelt)
        foreign = sum(word in content()["foreign"] for word in spelt) / len(spelt)
        return strange + foreign >= _FOREIGN_SHARE and (foreign > 0 or strange > _FOREIGN_SHARE and len(spelt) > 2)

    # --- content ----------------------------------------------------------------------------------------------------

    def _content(
        self, parts: list[tuple[str, list[str]]], surface: PromptSurface
    ) -> tuple[Pool, tuple[Absence, ...], tuple[Measure, ...]]:
        total = Pool(entities=tuple(Entity(name=region) for region in surface.regions))
        absent: list[Absence] = []
        measures: list[Measure] = []
        whole = surface.listed or surface.medical
        texts = (
            parts if whole else [(", ".join(part for part, _ in parts), [size for _, some in parts for size in some])]
        )
        for text, sizes in texts:
            denials = self._denials(text, listed=whole)
            absent += denials.absent
            pool = (
                self._clause(denials.text, listed=whole, telegraphic=whole or bool(surface.tags))
                if denials.text.strip(" .")
                else Pool()
            )
            if whole and not pool.entities and not denials.denies and not _tells_when(denials.text):
                self.found.add(ReadingReason.UNCLEAR, text)
            total = _joined_pools(total, pool)
            if total.entities and sizes:
                at = len(total.entities) - max(len(pool.entities), 1)
                measures += [(at, size) for size in sizes]
                if len(pool.entities) > 1:
                    self.found.add(ReadingReason.UNCLEAR, sizes[0])
        return total, tuple(dict.fromkeys(absent)), tuple(measures)

    def _denials(self, text: str, *, listed: bool) -> Denials:
        def read(some: str) -> tuple[Pool, bool]:
            quiet = _Reader(some, self.parser)
            pool = quiet._clause(some, listed=listed, telegraphic=listed)
            return pool, ReadingReason.UNCLEAR not in quiet.found.reasons

        denials = without_denials(text, read, listed=listed)
        if denials.unclear:
            self.found.add(ReadingReason.NEGATION_UNCLEAR, denials.unclear)
        elif denials.denies:
            self.found.add(ReadingReason.NEGATION)
        return denials

    def _clause(self, text: str, *, listed: bool, telegraphic: bool = False) -> Pool:
        """Return the pool of a clause, recording doubts.

        Args:
            text: The clause.
            listed: Whether it is one of a list of things.
            telegraphic: Whether a noun may stand without an article.
        """
        reading = ClauseReading(Tagger(words(text)).tags())
        pool = reading.pool()
        if self.parser is not None:
            pool = self.parser.parse(text)
        for doubt in reading.doubts if self.parser is None else ():
            if listed and doubt in lexicon()["events"]:
                continue  # "night" between commas tells when
            self.found.add(ReadingReason.UNCLEAR, doubt)
        pool = _dressed(pool)
        bare = {pool.entities[at].name for at in reading.bare()} if self.parser is None else set()
        made_of = {triple.object for triple in pool.triples if triple.predicate == "made of"}
        entities = []
        for at, entity in enumerate(pool.entities):
            last = entity.name.split()[-1]
            if entity.name in bare and (last in content()["uncounted"] or at in made_of):
                entity = replace(entity, count=None)
            elif entity.name in bare and not telegraphic and not mass(entity.name):
                self.found.add(ReadingReason.UNCLEAR, entity.name)
            entity = _described(entity)
            last = entity.name.split()[-1]
            if not is_known(last) or _is_no_noun(entity.name):
                self.found.add(ReadingReason.UNCLEAR, entity.name)
            if {last, singular(last)} & content()["vague"] or last in content()["adjectives"] and not known_noun(last):
                self.found.add(ReadingReason.UNCLEAR, last)
            if self.medical and " " in entity.name and entity.name.replace(" ", "_") not in content()["clinical_names"]:
                self.found.add(ReadingReason.UNCLEAR, entity.name)
            entities.append(entity)
        return replace(pool, entities=tuple(entities))


def _tells_when(text: str) -> bool:
    """Return True if a part names no thing by right: a time, an event, the picture itself, or nothing at all."""
    lists = lexicon()
    spelt = [word.lower() for word in _WORD.findall(text)]
    return not spelt or spelt[-1] in lists["events"] | lists["picture_words"]


def _is_no_noun(name: str) -> bool:
    """Return True if a name ends in an -ing form that is no noun ("holding"), or begins with a number ("2dogs")."""
    first, last = name.split()[0], name.split()[-1]
    acts = "VG" in lexicon().verb(last) and not known_noun(last) and last not in content()["uncounted"]
    return acts or first[0].isdigit() or (first != name and first.partition("-")[0] in lexicon().numbers)


def plain_quotes(text: str) -> str:
    """Return a text with straight apostrophes, in which words are found."""
    return text.replace("\u2019", "'").replace("\u2018", "'")


def _described(entity: Entity) -> Entity:
    """Return an entity whose name has no leading attributes ("sessile polyp")."""
    name, attributes = entity.name, list(entity.attributes)
    while " " in name and describes(name.split()[0]) and vg150().class_of(name) is None:
        first, _, name = name.partition(" ")
        attributes.append(first)
    if "neon" in attributes and name in ("sign", "light", "tube"):
        name = f"neon {name}"  # it is no colour and no material there
        attributes.remove("neon")
    return replace(entity, name=name, attributes=alphabetical(attributes))


def _dressed(pool: Pool) -> Pool:
    """Return a pool in which persons in clothes that the parser's lists lack wear them."""
    garments = worn()
    entities = [
        replace(entity, name=garments[entity.name], count=None)
        if entity.count is None and entity.name in garments
        else entity
        for entity in pool.entities
    ]
    triples = [
        replace(triple, predicate="wearing")
        if triple.predicate == "in"
        and entities[triple.object].name in garments.values()
        and is_being(entities[triple.subject].name)
        else triple
        for triple in pool.triples
    ]
    return Pool(entities=tuple(entities), triples=tuple(triples))


def _joined_pools(first: Pool, second: Pool) -> Pool:
    """Return two pools as one, the entities of the second after those of the first."""
    moved = len(first.entities)
    triples = tuple(
        Triple(subject=triple.subject + moved, predicate=triple.predicate, object=triple.object + moved)
        for triple in second.triples
    )
    return Pool(entities=(*first.entities, *second.entities), triples=(*first.triples, *triples))
