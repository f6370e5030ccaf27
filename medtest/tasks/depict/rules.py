"""When a pair of pictures violates the metamorphic relation of a change, and when a picture is not what was asked for.

Three rules compare the picture of a changed prompt with the source's own (ACTesting, section 3.2, and its code):

- ``strict``: classes as multisets, and what the prompt's change did must be seen in the pair. What was removed was in
  the source's picture and is gone, by as many as were removed where others of its class stay; what was added has come;
  everything else is as in the source, relations that were renamed by an exchange of classes among it. Relations are
  compared as far as prompts say them: of two things that nothing is said of, one is always left of the other.
- ``paper``: equations 7 to 14 to the letter, over sets of classes and sets of predicates; SS: equal sets (section 5.2).
  The paper has no relation for EC together with another operator: there the equation of the other holds once the
  exchanged class is left out.
- ``released``: what the published code does (``evaluation.py`` of sikygu/ACTesting, commit 47839d1): the 20 surest
  entities without a threshold; relations by predicate alone, the first 10 under EC and 20 else; EC and ER_A ask of
  classes only whether the new one is there; ER_R and SS hold the prompt's classes against a picture (SS against the
  source's), and ER_R asks that the removed class is gone.

Against ``truth`` a picture is held against its own prompt's pool, whatever the rule: every class that is said is there,
as many as said where a number is, with the attributes and in the relations that are said, and what the change removed
is not.

What a reader cannot tell (:class:`medtest.core.scenes.Tells`) leaves both sides. Where a change lies on it, nothing is
known of what it did, and the case is not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from medtest.core.scenes import NamedTriple
from medtest.tasks.depict.told import (
    change_told,
    entities_told,
    predicates_untold,
    told_by_both,
    told_classes,
    told_predicates,
)
from medtest.tasks.depict.views import (
    ADDITION,
    EXCHANGE,
    EXCHANGE_ADDITION,
    EXCHANGE_REMOVAL,
    NO_CHANGE,
    REMOVAL,
    SAME,
    PoolChange,
    Said,
    SceneLook,
)

STRICT, PAPER, RELEASED = "strict", "paper", "released"
RULES: tuple[str, ...] = (STRICT, PAPER, RELEASED)
ENTITIES, RELATIONS, ATTRIBUTES, COUNTS = "entities", "relations", "attributes", "counts"
KINDS: tuple[str, ...] = (ENTITIES, RELATIONS, ATTRIBUTES, COUNTS)
"""What errors are of, told apart."""
_TOP, _TOP_EXCHANGE = 20, 10
_REMOVES = (REMOVAL, EXCHANGE_REMOVAL)


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that is wrong.

    Attributes:
        kind: One of :data:`KINDS`.
        what: A class, a class with an attribute, or a triple: its names.
        words: What is wrong with it.
    """

    kind: str
    what: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """What a rule says of a case.

    Attributes:
        right: By kind whether it holds; None where nothing can be told or there is nothing to compare.
        told: Whether the reader can tell what the change did; False leaves the case without a verdict.
        broken: What is wrong.
    """

    right: dict[str, bool | None]
    told: bool = True
    broken: tuple[Broken, ...] = ()

    @property
    def whole(self) -> bool | None:
        """Whether all that is judged holds; None where the case is not judged."""
        known = [one for one in self.right.values() if one is not None]
        return all(known) if self.told and known else None


@dataclass(slots=True)
class _Found:
    """Collects what is wrong, and of which kinds anything could be told."""

    judged: set[str] = field(default_factory=set)
    broken: list[Broken] = field(default_factory=list)

    def check(self, holds: object, kind: str, what: Iterable[str], words: str) -> None:
        self.judged.add(kind)
        if not holds:
            self.broken.append(Broken(kind, tuple(what), words))

    def judgement(self, *, told: bool, unknown: Iterable[str] = ()) -> JudgedPair:
        untold = set(unknown)
        wrong = {one.kind for one in self.broken}
        right = {kind: None if kind in untold or kind not in self.judged else kind not in wrong for kind in KINDS}
        return JudgedPair(right=right, told=told, broken=tuple(one for one in self.broken if one.kind not in untold))


def against_source(
    rule: str, before: SceneLook, after: SceneLook, said: Said, change: PoolChange, shape: str = ""
) -> JudgedPair:
    """Judge a pair of pictures.

    Args:
        rule: One of :data:`RULES`.
        before: What the source's picture shows.
        after: What the follow-up's does.
        said: The follow-up's pool.
        change: What became of the source's pool.
        shape: The relation that is held against the pair, where it is not the change's own: on pairs of one prompt it
            gives the floor of that relation.
    """
    return _PAIRS[rule](before, after, said, change, shape or change.shape)


def against_truth(after: SceneLook, said: Said, change: PoolChange = NO_CHANGE) -> JudgedPair:
    """Judge a picture by its own prompt.

    Args:
        after: What it shows.
        said: Its pool.
        change: What became of the source's pool; none for a source.
    """
    tells, found = after.tells, _Found()
    for name in said.names:
        if tells.names(name):
            found.check(after.names[name] > 0, ENTITIES, (name,), "is not in the picture")
    for name in change.removed:
        if tells.names(name) and not said.names[name]:
            found.check(after.names[name] == 0, ENTITIES, (name,), "was removed from the prompt and is in the picture")
    for triple in said.triples:
        if tells.relates(triple):
            found.check(triple in after.triples, RELATIONS, triple, "is not in the picture")
    for (name, attribute), count in said.attributes.items():
        if tells.names(name) and tells.describes(attribute) and after.names[name]:
            seen, wanted = after.attributes[name, attribute], min(count, after.names[name])
            found.check(seen >= wanted, ATTRIBUTES, (attribute, name), "is not in the picture")
    for name in said.stated if tells.counts else ():
        if tells.names(name) and after.names[name]:
            number, wanted = after.names[name], said.names[name]
            found.check(number == wanted, COUNTS, (name,), f"is there {_times(number)}, not {_times(wanted)}")
    untold = {RELATIONS} if predicates_untold(change, tells) else set()
    if any(not tells.names(name) for name in (*change.removed, *change.added)):
        untold |= {ENTITIES}
    return found.judgement(told=not untold, unknown=untold)


def missed(after: SceneLook, said: Said, rule: str) -> tuple[int, int, int, int]:
    """Return what of a prompt is in its picture (ACTesting, equations 19 and 20).

    Args:
        after: What the picture shows.
        said: The prompt's pool.
        rule: ``strict`` counts things as often as they are said, and relations with both their ends; ``paper`` counts
            classes and predicates once each (its sets, equations 7 and 8); ``released`` counts every entity and every
            relation that is said, by class among the 20 surest and by predicate.

    Returns:
        Entities that are seen, entities that are said, relations that are seen, relations that are said; of what the
        reader can tell.
    """
    tells = after.tells
    names = {name: count for name, count in said.names.items() if tells.names(name)}
    triples = {triple: count for triple, count in said.triples.items() if tells.relates(triple)}
    if rule == STRICT:
        counted = {name: count if tells.counts else 1 for name, count in names.items()}
        seen = sum(min(count, after.names[name]) for name, count in counted.items())
        return seen, sum(counted.values()), sum(triple in after.triples for triple in triples), len(triples)
    if rule == PAPER:
        shown, wanted = set(after.predicates), {predicate for _, predicate, _ in triples}
        return sum(after.names[name] > 0 for name in names), len(names), len(shown & wanted), len(wanted)
    shown, ranked = set(after.predicates), set(after.ranked[:_TOP])
    there = sum(count for name, count in names.items() if name in ranked)
    related = sum(count for (_, predicate, _), count in triples.items() if predicate in shown)
    return there, sum(names.values()), related, sum(triples.values())


# --------------------------------------------------------------------------------------------------- strict


def _strict(before: SceneLook, after: SceneLook, said: Said, change: PoolChange, shape: str) -> JudgedPair:
    found = _Found()
    touched = change.removed.keys() | change.added.keys()
    both = told_by_both(before.tells, after.tells)
    for name in touched:
        if after.tells.names(name):
            _changed(found, name, before, after, said, change)
    found.judged.add(ENTITIES)
    for name in (before.names.keys() | after.names.keys()) - touched:
        if not both(name):
            continue
        was, is_ = before.names[name], after.names[name]
        words = "came without being asked for" if is_ else "is gone"
        found.check((was > 0) == (is_ > 0), ENTITIES, (name,), words)
        if was and is_ and name in said.stated and before.tells.counts and after.tells.counts:
            found.check(was == is_, COUNTS, (name,), f"is there {_times(is_)}, in the source {_times(was)}")
    untold = _relations(found, before, after, said, change)
    for name, attribute in said.attributes:
        told = both(name) and before.tells.describes(attribute) and after.tells.describes(attribute)
        if told and name not in touched and before.names[name] and after.names[name]:
            was, is_ = before.attributes[name, attribute] > 0, after.attributes[name, attribute] > 0
            words = "came without being asked for" if is_ else "is gone"
            found.check(was == is_, ATTRIBUTES, (attribute, name), words)
    unknown = set(untold)
    if not entities_told(before, after, said, change):
        unknown |= {ENTITIES}
    return found.judgement(told=change_told(before, after, said, change), unknown=unknown)


def _changed(found: _Found, name: str, before: SceneLook, after: SceneLook, said: Said, change: PoolChange) -> None:
    """Check a class of which the prompt's change took away or brought some."""
    less, more = change.removed[name], change.added[name]
    was, is_, still = before.names[name], after.names[name], said.names[name]
    told = before.tells.names(name)
    if less and not told:
        return
    if less:
        found.check(was > 0, ENTITIES, (name,), "was to be removed and is not in the source's picture")
        if not was:
            return
    if not still:
        found.check(is_ == 0, ENTITIES, (name,), "was removed from the prompt and is in the picture")
        return
    if is_ == 0:
        found.check(False, ENTITIES, (name,), "was added and is not in the picture" if more else "is gone")
        return
    exact = told and before.tells.counts and after.tells.counts and name in said.stated
    expected = was - less + more
    if exact and name in change.uncounted:
        words = f"is there {_times(is_)}, not {_times(still)} and fewer than in the source's picture"
        found.check(is_ == still < was, ENTITIES, (name,), words)
    elif exact:
        words = f"is there {_times(is_)}, not {_times(max(expected, 0))}"
        found.check(is_ == expected, ENTITIES, (name,), words)


def _relations(found: _Found, before: SceneLook, after: SceneLook, said: Said, change: PoolChange) -> set[str]:
    """Check relations that prompts say; return their kind where nothing can be told of them."""
    renamed, gone, new = change.pairs
    changed = {triple for pair in renamed for triple in pair} | set(gone) | set(new)
    pairs = [*renamed, *((triple, triple) for triple in said.triples if triple not in changed)]
    told = [one for one in pairs if before.tells.relates(one[0]) and after.tells.relates(one[1])]
    for was, is_ in told:
        words = "is not in the picture, as it was in the source's" if was in before.triples else "came, unlike before"
        found.check((was in before.triples) == (is_ in after.triples), RELATIONS, is_, words)
    for triple in gone:
        if said.triples[triple] or not (before.tells.relates(triple) and after.tells.relates(triple)):
            continue
        found.check(triple in before.triples, RELATIONS, triple, "was to be removed and is not in the source's picture")
        found.check(triple not in after.triples, RELATIONS, triple, "was removed from the prompt and is in the picture")
    for triple in new:
        if after.tells.relates(triple):
            found.check(triple in after.triples, RELATIONS, triple, "was added and is not in the picture")
    nothing = bool(pairs) and not told and not (gone or new)
    if nothing or predicates_untold(change, before.tells) or predicates_untold(change, after.tells):
        return {RELATIONS}
    found.judged.add(RELATIONS)
    return set()


# ---------------------------------------------------------------------------------------- the paper, and its code


def _paper(before: SceneLook, after: SceneLook, said: Said, change: PoolChange, shape: str) -> JudgedPair:
    s, a = (told_classes(one.names, before.tells, after.tells) for one in (before, after))
    sr, ar = (told_predicates(one.predicates, before.tells, after.tells) for one in (before, after))
    e1, e2 = set(change.removed), set(change.added)
    k, kr = s & a, sr & ar
    holds: dict[str, Callable[[], tuple[bool, bool]]] = {
        SAME: lambda: (s == a, sr == ar),
        EXCHANGE: lambda: (k == s - e1 == a - e2, kr == sr == ar),  # equations 9 and 10
        REMOVAL: lambda: (k == a, kr == ar),  # 11 and 12
        ADDITION: lambda: (k == s, kr == sr),  # 13 and 14
        EXCHANGE_REMOVAL: lambda: (k == a - e2, kr == ar),
        EXCHANGE_ADDITION: lambda: (k == s - e1, kr == sr),
    }
    entities, relations = holds[shape]()
    return _of_sets(entities, relations, (s, a), (sr, ar), before, after, said, change)


def _released(before: SceneLook, after: SceneLook, said: Said, change: PoolChange, shape: str) -> JudgedPair:
    s, a = (told_classes(one.ranked[:_TOP], before.tells, after.tells) for one in (before, after))
    most = _TOP_EXCHANGE if shape == EXCHANGE else _TOP
    sr, ar = (told_predicates(one.predicates, before.tells, after.tells, most) for one in (before, after))
    e1, e2 = set(change.removed), set(change.added)
    pool = {name for name in said.names if before.tells.names(name) and after.tells.names(name)}
    entities = {
        SAME: pool <= s,
        EXCHANGE: e2 <= a,
        REMOVAL: not e1 & a and pool <= a,
        ADDITION: e2 <= a,
        EXCHANGE_REMOVAL: not e1 & a and pool <= a,
        EXCHANGE_ADDITION: e2 <= a,
    }[shape]
    relations = sr <= ar
    if shape == SAME or shape in _REMOVES:
        relations = ar <= sr
    if shape in _REMOVES and change.gone:
        relations = relations and not all(triple in after.triples for triple in change.gone)
    if shape in (ADDITION, EXCHANGE_ADDITION):
        relations = relations and {predicate for _, predicate, _ in _came(change)} <= ar
    return _of_sets(entities, relations, (s, a), (sr, ar), before, after, said, change)


def _came(change: PoolChange) -> Counter[NamedTriple]:
    return change.pairs[2]


def _of_sets(
    entities: bool,
    relations: bool,
    classes: tuple[set[str], set[str]],
    predicates: tuple[set[str], set[str]],
    before: SceneLook,
    after: SceneLook,
    said: Said,
    change: PoolChange,
) -> JudgedPair:
    found = _Found()
    words = "the sets of classes break the rule", "the sets of predicates break the rule"
    found.check(entities, ENTITIES, sorted(classes[0] ^ classes[1]), words[0])
    found.check(relations, RELATIONS, sorted(predicates[0] ^ predicates[1]), words[1])
    unknown = set()
    if not entities_told(before, after, said, change):
        unknown |= {ENTITIES}
    mute = any(tells.predicates is not None and not tells.predicates for tells in (before.tells, after.tells))
    if mute or any(predicates_untold(change, tells) for tells in (before.tells, after.tells)):
        unknown |= {RELATIONS}
    return found.judgement(told=change_told(before, after, said, change), unknown=unknown)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


_PAIRS: dict[str, Callable[[SceneLook, SceneLook, Said, PoolChange, str], JudgedPair]] = {
    STRICT: _strict,
    PAPER: _paper,
    RELEASED: _released,
}
