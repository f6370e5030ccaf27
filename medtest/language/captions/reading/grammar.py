"""Reading of a clause with the controlled parser's rules, with passives, and with the doubts that arise on the way."""

from __future__ import annotations

from collections.abc import Sequence

from medtest.core.scenes import Pool
from medtest.language.captions.controlled.lexicon import garment, lexicon
from medtest.language.captions.controlled.phrases import Phrase, phrase
from medtest.language.captions.controlled.reading import CaptionReading
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.controlled.verbs import TRANSITIVE, VERBS, ing_of
from medtest.language.captions.controlled.whose import NounTraits
from medtest.language.captions.inflection import PLURAL_ONLY, singular
from medtest.language.captions.reading.content import is_being
from medtest.language.captions.vocabulary import vg150

_PASSIVE = "by "
"""Beginning of the pending predicate of a passive, whose agent becomes the subject."""
_WITHIN = frozenset(
    (Tag.ADJECTIVE, Tag.MODIFIER, Tag.ADVERB, Tag.AND, Tag.COMMA, Tag.NUMBER, Tag.QUANTITY, Tag.ORDINAL)
)
_BEFORE_OF = frozenset((Tag.NOUN, Tag.PARTICIPLE, Tag.ADJECTIVE, Tag.QUANTITY, Tag.NUMBER, Tag.COPULA))
_BEFORE_NOUNS = frozenset((Tag.HIS, Tag.ARTICLE, Tag.ADJECTIVE, Tag.PREPOSITION, Tag.NUMBER))


class PromptNoun(NounTraits):
    """Noun being read, with further persons and animals."""

    @property
    def animate(self) -> bool:
        """True for a person or an animal."""
        return is_being(self.name)


class ClauseReading(CaptionReading):
    """Reader of one clause that keeps what it was unsure of.

    Attributes:
        doubts: Words or phrases with more than one reading.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.doubts: list[str] = []
        self._begun: dict[int, tuple[int, int]] = {}
        self._start = 0

    def pool(self) -> Pool:
        """Return the pool, and collect doubts."""
        for token in self.tokens:
            if token.word in lexicon().groups["vague"] and token.tag is not Tag.NUMBER:
                self.doubts.append(token.word)
        self._check_acts()
        self._check_articles()
        read = super().pool()
        self._check_nouns(read)
        self._check_subjects(read)
        return read

    # --- passives ---------------------------------------------------------------------------------------------------

    def _verb(self, token: Token) -> None:
        following = self._following(self.at + 1)
        if token.tag is Tag.PARTICIPLE and self._before() is Tag.COPULA and self._ends(following) and self.clause.cur:
            for index in self.clause.cur:
                self.nouns[index].attributes.append(token.word)  # "the kite is torn"
            self.at += 1
            return
        if token.tag is not Tag.PARTICIPLE or following is None or self.tokens[following].word != "by":
            self._check_verb(token)
            super()._verb(token)
            return
        subjects = self._subjects(token)
        state = self.clause
        agent = phrase(self.tokens, following + 1)
        unsure = state.last_role not in ("", "&") and self._before() is Tag.NOUN  # "a toilet in a room surrounded by"
        state.relative, state.joined, state.connected = None, False, False
        if agent is None or not agent.name or not subjects or unsure or _is_place(token, agent):
            self.doubts.append(f"{token.word} by")
            super()._verb(token)
            return
        self.at = following + 1
        state.cur, state.pending = None, (_PASSIVE + (TRANSITIVE.get(token.base) or ing_of(token)), subjects)

    def _place(self, index: int) -> None:
        state = self.clause
        if state.pending is None or not state.pending[0].startswith(_PASSIVE):
            coordinated = state.joined and state.pending is None
            of_passive = coordinated and state.last_role.startswith(_PASSIVE)
            if of_passive:
                self.doubts.append("and")
            super()._place(index)
            return
        predicate, patients = state.pending
        for patient in patients:
            self._say([index], predicate.removeprefix(_PASSIVE), patient)
        state.joined = state.connected = False
        state.last, state.last_role, state.last_subjects, state.pending = [index], predicate, list(patients), None

    # --- doubts -----------------------------------------------------------------------------------------------------

    def _check_verb(self, token: Token) -> None:
        """Doubt a second verb that shares an object or a place with the first ("sit and talk on a bench")."""
        state = self.clause
        if state.joined and state.pending is None and token.tag in (Tag.FINITE, Tag.BASE, Tag.ING):
            back = self.tokens[self.at - 2] if self.at > 1 else None
            if back is not None and back.tag in VERBS:
                self.doubts.append(f"{back.word} and {token.word}")
        open_role = state.last_role not in ("", "&") and not state.last_role.startswith(_PASSIVE)
        if token.tag is Tag.ING and open_role and not state.relative and not state.joined:
            candidates = [self.nouns[index] for index in (*state.last, *state.main)]
            beings = sum(noun.animate for noun in candidates)
            if not beings or beings == len(candidates) or any(noun.vehicle for noun in candidates):
                self.doubts.append(token.word)

    def _preposition(self, token: Token) -> None:
        state = self.clause
        with_role = state.last_role not in ("", "&") and state.last != state.main
        if token.base and state.pending is None and token.base != "of" and self._doubts_place(token, with_role):
            self.doubts.append(token.word)
        if token.base == "of" and self.at and self.tokens[self.at - 1].tag not in _BEFORE_OF:
            self.doubts.append("of")
        super()._preposition(token)

    def _doubts_place(self, token: Token, named_last: bool) -> bool:
        """Return True if the noun to which a phrase of place or possession belongs is not certain.

        Args:
            token: The preposition.
            named_last: Whether an object was named last.
        """
        state = self.clause
        if state.last_role.startswith(_PASSIVE):
            return False  # the words after an agent describe the agent
        if len(state.last) > 1 and state.last_role not in ("", "&"):
            return True
        ahead = phrase(self.tokens, self.at + 1)
        worn = token.word == "in" and ahead is not None and bool(ahead.name) and garment(ahead.name)
        if state.last_role in ("with", "has"):
            return True
        if named_last and (token.base == "with" or worn) and not self._only_being(state.last):
            return True
        if named_last and token.base in ("to", "for"):
            return True
        return named_last and state.cur is None  # "a boat on a lake near a house"

    def _coordinate(self, index: int) -> None:
        state = self.clause
        if state.last_role not in ("", "&"):
            self._check_list(index)
        elif state.last_role == "" and state.cur is None and any(b in state.last for _, _, b in self.triples):
            self.doubts.append("and")
        super()._coordinate(index)

    def _check_list(self, index: int) -> None:
        """Doubt "and" after an object: the new noun may be another object, a subject, or the head of a clause."""
        following = self._following(self.at)
        tag = None if following is None else self.tokens[following].tag
        if (
            tag in VERBS
            or tag in (Tag.PREPOSITION, Tag.COPULA, Tag.RELATIVE, Tag.AUXILIARY)
            or self.clause.last_role == "of"
        ):
            self.doubts.append("and")

    def _only_being(self, last: Sequence[int]) -> bool:
        beings = [index for index, noun in enumerate(self.nouns) if noun.animate]
        return len(last) == 1 and beings == list(last)

    def _phrase(self, group: Phrase) -> None:
        self._start = self.at
        super()._phrase(group)

    def _new(self, group: Phrase) -> int:
        self.nouns.append(PromptNoun(group.name, group.count, list(group.attributes)))
        index = len(self.nouns) - 1
        self._begun[index] = (self._start, group.end)
        self._check_phrase(group)
        return index

    def _check_phrase(self, group: Phrase) -> None:
        tokens = self.tokens[self._start : group.end]
        for at, token in enumerate(tokens):
            if token.tag is Tag.POSSESSIVE:
                tokens = tokens[at + 1 :]  # the owner is a separate phrase
                break
        nouns = [token.word for token in tokens if token.tag is Tag.NOUN]
        if len(nouns) > 1 and vg150().class_of(group.name) is None and self._may_act(nouns, group.end):
            self.doubts.append(" ".join(nouns))
        heads = [token.word for token in tokens if token.tag is Tag.NOUN]
        following = self.tokens[group.end].word if group.end < len(self.tokens) else ""
        if heads and heads[-1] in lexicon()["always_collections"] and following != "of":
            self.doubts.append(heads[-1])  # "a large group is sitting"
        if any(
            token.word in lexicon().groups["joined_participles"] and at and tokens[at - 1].tag is not Tag.ADVERB
            for at, token in enumerate(tokens)
        ):
            self.doubts.append(group.name)  # "a snow covered mountain"
        measures = [token for token in tokens if token.word in lexicon()["collections"] and token.tag is Tag.NOUN]
        vague = any(token.word in lexicon().groups["parts"] for token in measures)
        if measures and (vague or any(token.tag is Tag.NUMBER for token in tokens)):
            self.doubts.append(" ".join(token.word for token in tokens))

    def _may_act(self, nouns: Sequence[str], end: int) -> bool:
        """Return True if the last of several nouns may be the verb of the one before: "a glove stand on"."""
        following = self.tokens[end] if end < len(self.tokens) else None
        if is_being(nouns[0]) and (following is None or following.tag is not Tag.POSSESSIVE):
            return True
        goes_on = following is not None and (following.tag is Tag.PREPOSITION or following.tag in OPENS_NOUN)
        return bool(lexicon().verb(nouns[-1])) and goes_on and nouns[-1] not in lexicon().groups["hardly_verbs"]

    def _check_acts(self) -> None:
        """Doubt an -ing form where a noun is expected: "her knitting", "active bleeding"."""
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            opens = before.tag in _BEFORE_NOUNS or before.word == "her"
            if token.tag in (Tag.ING, Tag.ADVERB) and token.word.endswith("ing") and opens:
                self.doubts.append(token.word)

    def _check_articles(self) -> None:
        """Doubt an article without a noun ("near a well", where "well" is read as an adverb)."""
        for at, token in enumerate(self.tokens):
            if token.tag is not Tag.ARTICLE:
                continue
            end = at + 1
            while end < len(self.tokens) and self.tokens[end].tag in _WITHIN:
                end += 1
            if end >= len(self.tokens) or self.tokens[end].tag is not Tag.NOUN:
                self.doubts.append(" ".join(word.word for word in self.tokens[at : end + 1]))

    def _ends(self, following: int | None) -> bool:
        return following is None or self.tokens[following].tag is Tag.STOP

    def _check_nouns(self, read: Pool) -> None:
        """Doubt nouns that the pool lacks, other than those of pictures, collections, regions and times."""
        lists = lexicon()
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            if token.word in lists["regions"] and token.tag is Tag.NOUN and before.tag in (Tag.ADJECTIVE, Tag.MODIFIER):
                self.doubts.append(token.word)  # "a truck with a blue interior"
        for entity in read.entities:
            if entity.name.split()[0] in lexicon().groups["sides"] and " " in entity.name or "/" in entity.name:
                self.doubts.append(entity.name)
        silent = lists["picture_words"] | lists["collections"] | lists["regions"] | lists["picture_starts"]
        named = {word for entity in read.entities for word in entity.name.replace("'s", " 's").split()}
        named |= {attribute for entity in read.entities for attribute in entity.attributes}
        for token in self.tokens:
            if token.tag is not Tag.NOUN or token.word in silent:
                continue
            if {token.word, singular(token.word)}.isdisjoint(named):
                self.doubts.append(token.word)

    def _check_subjects(self, read: Pool) -> None:
        """Doubt a clause whose verb or preposition relates nothing, or that leaves a thing unrelated."""
        related = {end for triple in read.triples for end in (triple.subject, triple.object)}
        relates = any(token.tag in VERBS or (token.tag is Tag.PREPOSITION and token.base) for token in self.tokens)
        apart = [entity.name for at, entity in enumerate(read.entities) if at not in related]
        if relates and read.triples and apart:
            self.doubts.append(apart[0])
        acts = any(token.tag in (Tag.PARTICIPLE, Tag.FINITE, Tag.ING) for token in self.tokens)
        if acts and not read.triples and len(read.entities) > 1:
            self.doubts.append(apart[0])
        prepositions = [token for token in self.tokens if token.tag is Tag.PREPOSITION and token.base]
        if prepositions and not read.triples and len(read.entities) > 1:
            self.doubts.append(prepositions[0].word)

    def _following(self, at: int) -> int | None:
        """Return the index of the next token that is no adverb."""
        while at < len(self.tokens) and self.tokens[at].tag is Tag.ADVERB:
            at += 1
        return at if at < len(self.tokens) else None

    def bare(self) -> list[int]:
        """Return the entities that are named in the singular without article, number or owner ("castle")."""
        opening = OPENS_NOUN - {Tag.NOUN, Tag.ADJECTIVE, Tag.MODIFIER}
        indices = []
        for index, (start, end) in self._begun.items():
            words = self.tokens[start:end]
            name = self.nouns[index].name
            heads = [token for token in words if token.tag is Tag.NOUN]
            plain = not any(token.tag in opening or token.tag is Tag.POSSESSIVE for token in words)
            if plain and self.nouns[index].count == 1 and heads and name.split()[-1] not in PLURAL_ONLY:
                indices.append(index)
        return indices


def _is_place(token: Token, agent: Phrase) -> bool:
    """Return True if "by" may tell where something is: "perched by a river", unless a being or a vehicle follows."""
    if is_being(agent.name) or PromptNoun(agent.name, None, []).vehicle:
        return token.base in lexicon().groups["settled"] and not is_being(agent.name)
    return token.base not in lexicon().groups["done_by_things"]
