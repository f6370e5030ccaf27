"""Reading of tagged words into a pool: subjects of verbs, attachment of prepositions, coordination."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from medtest.core.scenes import Entity, Pool, Triple, alphabetical
from medtest.language.captions.controlled.clause import Clause
from medtest.language.captions.controlled.lexicon import garment, lexicon, mass
from medtest.language.captions.controlled.phrases import Phrase, phrase
from medtest.language.captions.controlled.tags import OPENS_NOUN, Tag, Token
from medtest.language.captions.controlled.verbs import VERBS, predicate_of_verb
from medtest.language.captions.controlled.whose import NounTraits, belongs_to, subject_of
from medtest.language.captions.inflection import PLURAL_ONLY

_FINITES = frozenset((Tag.FINITE, Tag.COPULA, Tag.AUXILIARY))


class CaptionReading:
    """Reader of one tagged caption."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.nouns: list[NounTraits] = []
        self.triples: list[tuple[int, str, int]] = []
        self.at = 0
        self.clause = Clause()

    def pool(self) -> Pool:
        """Return the pool."""
        while self.at < len(self.tokens):
            self._step()
        entities = tuple(
            Entity(name=noun.name, count=noun.count, attributes=alphabetical(noun.attributes)) for noun in self.nouns
        )
        return Pool(
            entities=entities, triples=tuple(Triple(subject=a, predicate=p, object=b) for a, p, b in self.triples)
        )

    def _step(self) -> None:
        token, state = self.tokens[self.at], self.clause
        if token.tag is Tag.STOP:
            if self._tag(1) is not Tag.PREPOSITION or not state.main:
                self.clause = Clause()
            else:
                state.last, state.last_role, state.pending = list(state.main), "", None
        elif token.tag in (Tag.AND, Tag.COMMA):
            state.joined = True
        elif token.tag is Tag.CONNECTOR:
            state.connected, state.pending = True, None
        elif token.tag is Tag.RELATIVE:
            if token.word != "where":
                state.relative = list(state.last or state.main)
        elif token.tag is Tag.PRONOUN:
            self._pronoun(token)
        elif token.tag is Tag.THERE:
            state.main, state.cur = [], None
            self.at += 1
            while self._tag(1) in (Tag.COPULA, Tag.ADVERB):
                self.at += 1
        elif token.tag in (Tag.COPULA, Tag.AUXILIARY):
            self._copula()
        elif token.tag in VERBS:
            self._verb(token)
            return
        elif token.tag is Tag.PREPOSITION:
            self._preposition(token)
        elif token.tag in OPENS_NOUN:
            group = phrase(self.tokens, self.at, first=not self.nouns)
            if group is not None:
                self._phrase(group)
                return
        self.at += 1

    # --- nouns ------------------------------------------------------------------------------------------------------

    def _phrase(self, group: Phrase) -> None:
        state = self.clause
        if group.picture and state.pending is not None and state.pending[0] == "taking":
            state.pending, state.drops = None, True  # "taking a picture of a dog" is not a visible relation
        count = group.count
        through = group
        while through.collection or through.picture:
            # "a group of", "the side of", "a picture of": the entity follows "of"
            if self._word(through.end) == "of":
                inner = phrase(self.tokens, through.end + 1)
            elif through.picture:
                self.at, state.silent = through.end, not self.nouns
                return
            else:
                break
            if inner is None:
                self.at = through.end + 1
                return
            if through.collection and count is not None and inner.count is None and not mass(inner.name):
                one_pair = count == 2 and inner.name.split(" ")[-1] in PLURAL_ONLY and not through.numbered
                inner.count = 1 if one_pair else count
            inner.attributes += [attribute for attribute in through.attributes if attribute in lexicon()["colours"]]
            count = inner.count
            through = inner
        self.at = through.end
        photographed = state.pending is not None and state.pending[0] in ("taking", "for", "in", "at")
        if photographed and through.name.rpartition(" ")[2] in lexicon()["picture_words"]:
            through.name = ""
        if not through.name:
            self._nothing(through)
            return
        index = self._entity(through)
        self._place(index)

    def _nothing(self, group: Phrase) -> None:
        """Handle a phrase that names no entity: an event, "it", or adjectives after a copula."""
        state = self.clause
        if state.pending is None and state.cur is not None and group.attributes and not group.definite:
            for index in state.cur:
                self.nouns[index].attributes += group.attributes
        if state.pending is not None or group.end < len(self.tokens) and self._word(group.end) == "of":
            state.pending = None
            if self._word(group.end) == "of":
                state.last, state.last_role = [], "&"  # "a bite of cake", "a game of chess": "of" has no visible owner
        state.joined = state.connected = state.drops = False
        if group.owner is not None and group.owner.name:
            self._place(self._entity(group.owner))

    def _entity(self, group: Phrase) -> int:
        if group.owner is not None and group.owner.name:
            owner = self._entity(group.owner)
            index = self._new(group)
            self._say([index], "of", owner)
            return index
        namesakes = [index for index, noun in enumerate(self.nouns) if noun.name == group.name]
        if group.ordinal and len(namesakes) >= group.ordinal:
            return namesakes[group.ordinal - 1]
        if group.definite and not group.another and namesakes and not group.ordinal:
            likely = [index for index in namesakes if set(group.attributes) <= set(self.nouns[index].attributes)]
            if likely:
                return likely[0]
        return self._new(group)

    def _new(self, group: Phrase) -> int:
        self.nouns.append(NounTraits(group.name, group.count, list(group.attributes)))
        return len(self.nouns) - 1

    def _place(self, index: int) -> None:
        """Assign a role to an entity: object of a pending predicate, list member, or subject."""
        state = self.clause
        joined, connected = state.joined, state.connected
        state.joined = state.connected = False
        if state.drops and state.pending is None:
            state.drops = False
        elif state.pending is not None:
            predicate, subjects = state.pending
            self._say(subjects, predicate, index)
            if predicate == "wearing" and self.nouns[index].name == "glass" and self.nouns[index].count is None:
                self.nouns[index].name = "glasses"
            state.last, state.last_role, state.last_subjects, state.pending = [index], predicate, subjects, None
        elif connected:
            state.main, state.cur, state.last, state.last_role = [index], None, [index], ""
        elif joined and state.last:
            self._coordinate(index)
        elif state.relative is not None:
            state.last, state.last_role, state.relative = [index], "", None
        elif not state.main or self._tag(0) in _FINITES:
            state.main, state.cur, state.last, state.last_role = [index], None, [index], ""
        elif state.last_role not in ("", "&") and state.last:
            self._coordinate(index)  # a list without commas
        else:
            state.last, state.last_role = [index], "&"

    def _coordinate(self, index: int) -> None:
        """Attach a coordinated entity: to the subjects, to the objects, or as the subject of a new clause."""
        state, new = self.clause, self.nouns[index]
        if state.last_role == "" and state.cur is not None:
            state.main, state.cur, state.last = [index], None, [index]
            return
        next_tag = self._tag(0)
        if state.last_role == "" and state.cur is None:
            state.last = [*state.last, index]
            state.main = [*state.main, index] if set(state.main) <= set(state.last) else state.main
            return
        main = [self.nouns[position] for position in state.main]
        lasts = [self.nouns[position] for position in state.last]
        beings = any(noun.animate for noun in main) and new.animate and not any(noun.animate for noun in lasts)
        parallel = next_tag is Tag.PREPOSITION and state.cur is None and new.animate
        beings = beings or (parallel and not any(noun.animate for noun in lasts))
        goes_on = (
            next_tag in VERBS
            or next_tag in (Tag.PREPOSITION, Tag.RELATIVE)
            and self._word(self.at) not in ("of", "with", "in")
        )
        if next_tag in _FINITES or (beings and (goes_on or state.last_role not in ("with", "has"))):
            state.main, state.cur, state.last, state.last_role = [index], None, [index], ""
        elif state.last_role == "&" or state.last_role == "":
            state.last = [*state.last, index]
        else:
            self._say(state.last_subjects, state.last_role, index)
            state.last = [*state.last, index]

    # --- verbs and prepositions -------------------------------------------------------------------------------------

    def _copula(self) -> None:
        state = self.clause
        if state.relative is not None:
            state.cur, state.relative = state.relative, None
        elif state.last_role in ("&", "") and state.last and not state.joined:
            state.cur = list(state.last)
            state.main = list(state.main or state.last)
        else:
            state.cur = list(state.main)
        state.pending, state.joined = None, False
        self._attributes()

    def _attributes(self) -> None:
        """Read adjectives after a copula."""
        state = self.clause
        while self._tag(1) is Tag.ADVERB:
            self.at += 1
        group = phrase(self.tokens, self.at + 1)
        if group is None or group.name or group.collection or state.cur is None:
            return
        if group.attributes:
            for index in state.cur:
                self.nouns[index].attributes += group.attributes
            self.at = group.end - 1

    def _verb(self, token: Token) -> None:
        state = self.clause
        subjects = self._subjects(token)
        state.relative, state.joined, state.connected, state.pending = None, False, False, None
        predicate = predicate_of_verb(self.tokens, self.at)
        self.at = predicate.end
        if state.silent and not subjects:
            return
        state.cur = subjects
        if subjects:
            state.last, state.last_role = list(subjects), ""
        if predicate.wants:
            return
        if predicate.predicate:
            state.pending = (predicate.predicate, subjects)
        state.drops = predicate.drops

    def _subjects(self, token: Token) -> list[int]:
        state = self.clause
        if state.relative is not None:
            return list(state.relative)
        if state.connected:
            return list(state.main)
        if state.joined:
            return list(state.cur if state.cur is not None else state.main)
        previous_tag = self.tokens[self.at - 1].tag if self.at else None
        if (
            previous_tag in (Tag.COPULA, Tag.AUXILIARY, Tag.TO, Tag.ADVERB, Tag.ADJECTIVE, Tag.RELATIVE)
            and state.cur is not None
            and self._copular()
        ):
            return list(state.cur)
        if token.tag in (Tag.FINITE, Tag.BASE):
            return list(state.main or state.last) if token.tag is Tag.FINITE else list(state.cur or state.main)
        if state.last_role in ("", "&"):
            return list(state.last or state.main)
        return subject_of(
            token,
            last=[(index, self.nouns[index]) for index in state.last],
            role=state.last_role,
            owners=[(index, self.nouns[index]) for index in state.last_subjects],
            main=[(index, self.nouns[index]) for index in state.main],
        )

    def _copular(self) -> bool:
        """Return True if a copula, "to" or an adjective led to this verb, with no noun in between."""
        back = self.at - 1
        while back >= 0 and self.tokens[back].tag in (Tag.ADVERB, Tag.ADJECTIVE, Tag.AUXILIARY, Tag.TO):
            if self.tokens[back].tag is Tag.TO:
                return True
            back -= 1
        return back >= 0 and self.tokens[back].tag in (Tag.COPULA, Tag.ING, Tag.FINITE, Tag.PARTICIPLE)

    def _preposition(self, token: Token) -> None:
        state = self.clause
        joined, state.joined = state.joined, False
        if not token.base:
            state.pending, state.drops = None, True
            self._skip_unseen()
            return
        ahead = phrase(self.tokens, self.at + 1)
        name = _name_ahead(ahead, self.tokens)
        if (
            self.at + 1 < len(self.tokens)
            and self.tokens[self.at + 1].tag is Tag.ING
            and token.word in ("for", "of", "by", "from", "at")
        ):
            return
        if state.pending is not None and not joined:
            state.pending = (token.base, state.pending[1])
            return
        if self._before() is Tag.COPULA and state.cur is not None:
            subjects = list(state.cur)
        elif joined and state.last_role and state.last_role != "&":
            subjects = list(state.last_subjects)
        else:
            subjects = belongs_to(
                token,
                name,
                ahead=self._after_phrase(ahead),
                last=[(index, self.nouns[index]) for index in state.last],
                role=state.last_role,
                owners=[(index, self.nouns[index]) for index in state.last_subjects],
                current=None if state.cur is None else [(index, self.nouns[index]) for index in state.cur],
                main=[(index, self.nouns[index]) for index in state.main],
            )
        predicate = token.base
        if token.word == "in" and name and _wears(name, [self.nouns[index] for index in subjects]):
            predicate = "wearing"
        state.pending = (predicate, subjects)

    def _after_phrase(self, ahead: Phrase | None) -> str:
        """Return the pronoun that a phrase's own preposition leads to ("with a bowl in front of him"), or "his"."""
        if ahead is None:
            return ""
        if any(following.tag is Tag.HIS for following in self.tokens[self.at + 1 : ahead.end]):
            return "his"
        at = ahead.end
        if (
            at + 1 < len(self.tokens)
            and self.tokens[at].tag is Tag.PREPOSITION
            and self.tokens[at + 1].tag is Tag.PRONOUN
        ):
            return self.tokens[at + 1].word
        return ""

    def _skip_unseen(self) -> None:
        """Skip the object of "without", "like" or "during", which is not visible."""
        group = phrase(self.tokens, self.at + 1)
        while group is not None:
            self.at = group.end - 1
            if self._word(group.end) != "of":
                break
            group = phrase(self.tokens, group.end + 1)
        self.clause.drops = False

    def _pronoun(self, token: Token) -> None:
        state = self.clause
        if state.pending is not None:
            # "on it" only repeats a relation; what follows refers to the antecedent of "it" again
            state.pending, state.joined, state.last, state.last_role = None, False, list(state.main), ""
        elif self._tag(1) in _FINITES or self._tag(1) in VERBS:
            state.cur = list(state.main)
            if state.last_role:
                state.last, state.last_role = list(state.main), ""
        state.connected = False

    def _before(self) -> Tag | None:
        """Return the previous tag, ignoring adverbs."""
        at = self.at - 1
        while at >= 0 and self.tokens[at].tag is Tag.ADVERB:
            at -= 1
        return self.tokens[at].tag if at >= 0 else None

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _say(self, subjects: Iterable[int], predicate: str, index: int) -> None:
        for subject in subjects:
            triple = (subject, predicate, index)
            pair = any((a, b) == (subject, index) and p == predicate for a, p, b in self.triples)
            if subject != index and predicate and not pair:
                self.triples.append(triple)

    def _tag(self, ahead: int) -> Tag | None:
        at = self.at + ahead
        while at < len(self.tokens) and self.tokens[at].tag is Tag.ADVERB and ahead == 0:
            at += 1
        return self.tokens[at].tag if at < len(self.tokens) else None

    def _word(self, at: int) -> str:
        return self.tokens[at].word if at < len(self.tokens) else ""


def _name_ahead(group: Phrase | None, tokens: Sequence[Token]) -> str:
    while group is not None and (group.collection or group.picture):
        group = phrase(tokens, group.end + 1)
    return "" if group is None else group.name


def _wears(name: str, subjects: Sequence[NounTraits]) -> bool:
    return garment(name) and any(subject.animate for subject in subjects)
