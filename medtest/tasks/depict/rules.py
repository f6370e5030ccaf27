"""Rules that decide whether a pair of pictures violates its metamorphic relation, or a picture its prompt.

Three rules compare the picture of a changed prompt with the source's own (ACTesting, section 3.2, and its code):

- ``strict``: classes are multisets, and the prompt's change must be visible in the pair. Removed objects were in the
  source's picture and are gone, by the number removed if others of the class stay; added objects have appeared; the
  same holds for exchanged attributes; everything else is as in the source, including relations renamed by an exchange
  of classes. Only relations in prompts are compared: of any two other objects one is always left of the other. Classes
  that the prompt calls uncertain are not compared.
- ``paper``: equations 7 to 14 literally, over sets of classes and sets of predicates; SS: equal sets (section 5.2). The
  paper defines no relation for EC combined with another operator: here the equation of the other applies after the
  exchanged class is left out.
- ``released``: the published code (``evaluation.py`` of sikygu/ACTesting, commit 47839d1): the 20 entities with the
  highest scores, without a threshold; relations by predicate only, the first 10 under EC and 20 otherwise; EC and ER_A
  check only that the new class is present; ER_R and SS compare the prompt's classes with a picture (SS with the
  source's), and ER_R checks that the removed class is gone.

Against ``truth`` a picture is compared with its own prompt's pool under every rule: each class in it is present, as
often as stated, with the stated attributes and relations, and removed or excluded objects are absent.

Anything that a reader cannot detect (:class:`medtest.core.scenes.Tells`) is excluded on both sides. If a change
concerns it, the effect is unknown and the case is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from medtest.tasks.depict.told import (
    attributes_untold,
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
    denied,
    shown_with,
)

STRICT, PAPER, RELEASED = "strict", "paper", "released"
RULES: tuple[str, ...] = (STRICT, PAPER, RELEASED)
ENTITIES, RELATIONS, ATTRIBUTES, COUNTS = "entities", "relations", "attributes", "counts"
KINDS: tuple[str, ...] = (ENTITIES, RELATIONS, ATTRIBUTES, COUNTS)
"""Kinds of errors."""
LEAST_JUDGED = 20
"""Number of judged cases, or of judged things in prompts, below which a rate is no headline."""
_TOP, _TOP_EXCHANGE = 20, 10
_REMOVES = (REMOVAL, EXCHANGE_REMOVAL)


@dataclass(frozen=True, slots=True)
class Broken:
    """One error.

    Attributes:
        kind: One of :data:`KINDS`.
        names: Names: a class, a class with an attribute, or a triple.
        words: Description of the error.
    """

    kind: str
    names: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """Judgement of a case under a rule.

    Attributes:
        right: By kind, whether it holds; None if it cannot be determined or there is nothing to compare.
        detectable: True if the reader can detect the change; False leaves the case without a verdict.
        broken: The errors.
    """

    right: dict[str, bool | None]
    detectable: bool = True
    broken: tuple[Broken, ...] = ()

    @property
    def whole(self) -> bool | None:
        """True if everything that is judged holds; None if the case is not judged."""
        determined = [value for value in self.right.values() if value is not None]
        return all(determined) if self.detectable and determined else None


@dataclass(slots=True)
class _Found:
    """Collector of errors and of the kinds that were judged."""

    judged: set[str] = field(default_factory=set)
    broken: list[Broken] = field(default_factory=list)

    def check(self, holds: object, kind: str, names: Iterable[str], words: str) -> None:
        self.judged.add(kind)
        if not holds:
            self.broken.append(Broken(kind, tuple(names), words))

    def judgement(self, *, detectable: bool, unknown: Iterable[str] = ()) -> JudgedPair:
        untold = set(unknown)
        wrong = {error.kind for error in self.broken}
        right = {kind: None if kind in untold or kind not in self.judged else kind not in wrong for kind in KINDS}
        return JudgedPair(
            right=right, detectable=detectable, broken=tuple(error for error in self.broken if error.kind not in untold)
        )


def against_source(
    rule: str, before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange, shape: str = ""
) -> JudgedPair:
    """Judge a pair of pictures.

    Args:
        rule: One of :data:`RULES`.
        before: Scene of the source's picture.
        after: Scene of the follow-up's picture.
        prompt: Pool of the follow-up.
        change: Change of the source's pool.
        shape: Metamorphic relation to apply, if not that of the change: on pairs of one prompt this gives the
            relation's floor.
    """
    return _PAIRS[rule](before, after, prompt, change, shape or change.shape)


def against_truth(after: SceneLook, prompt: Said, change: PoolChange = NO_CHANGE) -> JudgedPair:
    """Judge a picture by its own prompt.

    Args:
        after: Scene of the picture.
        prompt: Its pool.
        change: Change of the source's pool; none for a source.
    """
    tells, errors = after.tells, _Found()
    for name in prompt.names:
        if tells.names(name):
            errors.check(after.names[name] > 0, ENTITIES, (name,), "is not in the picture")
    for name in change.removed:
        if tells.names(name) and not prompt.names[name]:
            errors.check(after.names[name] == 0, ENTITIES, (name,), "was removed from the prompt and is in the picture")
    for name in sorted(prompt.absent - change.removed.keys()):
        if tells.names(name):
            errors.check(after.names[name] == 0, ENTITIES, (name,), "is excluded by the prompt and is in the picture")
    for names, is_there in denied(after, prompt):
        kind = ATTRIBUTES if len(names) == 2 else RELATIONS
        errors.check(not is_there, kind, names, "is denied by the prompt and is in the picture")
    for triple in prompt.triples:
        if tells.relates(triple):
            errors.check(triple in after.triples, RELATIONS, triple, "is not in the picture")
    for (name, attribute), count in prompt.attributes.items():
        if tells.names(name) and tells.describes(attribute, name) and after.names[name]:
            detected, required = shown_with(after, prompt, name, attribute), min(count, after.names[name])
            errors.check(detected >= required, ATTRIBUTES, (attribute, name), "is not in the picture")
    for name in prompt.stated if tells.counts else ():
        if tells.names(name) and after.names[name]:
            number, required = after.names[name], prompt.names[name]
            errors.check(number == required, COUNTS, (name,), f"is there {_times(number)}, not {_times(required)}")
    untold = {RELATIONS} if predicates_untold(change, tells) else set()
    if attributes_untold(change, tells):
        untold |= {ATTRIBUTES}
    if any(not tells.names(name) for name in (*change.removed, *change.added)):
        untold |= {ENTITIES}
    return errors.judgement(detectable=not untold, unknown=untold)


def missed(after: SceneLook, prompt: Said, rule: str) -> tuple[int, int, int, int]:
    """Return the numbers of detected and stated objects of a prompt (ACTesting, equations 19 and 20).

    Args:
        after: Scene of the picture.
        prompt: Pool of the prompt.
        rule: ``strict`` counts objects as often as they are stated, and relations with both ends; ``paper`` counts
            classes and predicates once each (its sets, equations 7 and 8); ``released`` counts every stated entity and
            relation, by class among the 20 with the highest scores and by predicate.

    Returns:
        Entities detected, entities stated, relations detected, relations stated; only those that the reader can detect.
    """
    tells = after.tells
    names = {name: count for name, count in prompt.names.items() if tells.names(name)}
    triples = {triple: count for triple, count in prompt.triples.items() if tells.relates(triple)}
    if rule == STRICT:
        required = {name: count if tells.counts else 1 for name, count in names.items()}
        detected = sum(min(count, after.names[name]) for name, count in required.items())
        return detected, sum(required.values()), sum(triple in after.triples for triple in triples), len(triples)
    if rule == PAPER:
        predicates, stated = set(after.predicates), {predicate for _, predicate, _ in triples}
        return sum(after.names[name] > 0 for name in names), len(names), len(predicates & stated), len(stated)
    predicates, ranked = set(after.predicates), set(after.ranked[:_TOP])
    present = sum(count for name, count in names.items() if name in ranked)
    related = sum(count for (_, predicate, _), count in triples.items() if predicate in predicates)
    return present, sum(names.values()), related, sum(triples.values())


# --------------------------------------------------------------------------------------------------- strict


def _strict(source: SceneLook, followup: SceneLook, prompt: Said, change: PoolChange, shape: str) -> JudgedPair:
    errors = _Found()
    touched = change.removed.keys() | change.added.keys()
    detectable = told_by_both(source.tells, followup.tells)
    for name in touched:
        if followup.tells.names(name):
            _changed(errors, name, source, followup, prompt, change)
    errors.judged.add(ENTITIES)
    for name in (source.names.keys() | followup.names.keys()) - touched - prompt.uncertain:
        if not detectable(name):
            continue
        was, is_ = source.names[name], followup.names[name]
        words = "came without being asked for" if is_ else "is gone"
        errors.check((was > 0) == (is_ > 0), ENTITIES, (name,), words)
        if was and is_ and name in prompt.stated and source.tells.counts and followup.tells.counts:
            errors.check(was == is_, COUNTS, (name,), f"is there {_times(is_)}, in the source {_times(was)}")
    untold = _relations(errors, source, followup, prompt, change)
    _exchanged_attributes(errors, source, followup, prompt, change)
    for name, attribute in prompt.attributes:
        comparable = (
            detectable(name) and source.tells.describes(attribute, name) and followup.tells.describes(attribute, name)
        )
        compared = comparable and (name, attribute) not in change.gained
        if compared and name not in touched and source.names[name] and followup.names[name]:
            was, is_ = source.attributes[name, attribute] > 0, followup.attributes[name, attribute] > 0
            words = "came without being asked for" if is_ else "is gone"
            errors.check(was == is_, ATTRIBUTES, (attribute, name), words)
    unknown = set(untold)
    if attributes_untold(change, source.tells) or attributes_untold(change, followup.tells):
        unknown |= {ATTRIBUTES}
    if not entities_told(source, followup, prompt, change):
        unknown |= {ENTITIES}
    return errors.judgement(detectable=change_told(source, followup, prompt, change), unknown=unknown)


def _exchanged_attributes(
    errors: _Found, source: SceneLook, followup: SceneLook, prompt: Said, change: PoolChange
) -> None:
    """Check attributes that the prompt's change took away or brought."""
    if attributes_untold(change, source.tells) or attributes_untold(change, followup.tells):
        return
    for name, attribute in change.lost:
        words = "was to be removed and is not in the source's picture"
        errors.check(source.attributes[name, attribute] > 0, ATTRIBUTES, (attribute, name), words)
        if not prompt.attributes[name, attribute]:
            words = "was removed from the prompt and is in the picture"
            errors.check(not followup.attributes[name, attribute], ATTRIBUTES, (attribute, name), words)
    for name, attribute in change.gained:
        words = "was added and is not in the picture"
        errors.check(followup.attributes[name, attribute] > 0, ATTRIBUTES, (attribute, name), words)


def _changed(errors: _Found, name: str, before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange) -> None:
    """Check a class whose number the prompt's change reduced or increased."""
    removed, added = change.removed[name], change.added[name]
    was, is_, still = before.names[name], after.names[name], prompt.names[name]
    detectable = before.tells.names(name)
    if removed and not detectable:
        return
    if removed:
        errors.check(was > 0, ENTITIES, (name,), "was to be removed and is not in the source's picture")
        if not was:
            return
    if not still:
        errors.check(is_ == 0, ENTITIES, (name,), "was removed from the prompt and is in the picture")
        return
    if is_ == 0:
        errors.check(False, ENTITIES, (name,), "was added and is not in the picture" if added else "is gone")
        return
    exact = detectable and before.tells.counts and after.tells.counts and name in prompt.stated
    expected = was - removed + added
    if exact and name in change.uncounted:
        words = f"is there {_times(is_)}, not {_times(still)} and fewer than in the source's picture"
        errors.check(is_ == still < was, ENTITIES, (name,), words)
    elif exact:
        words = f"is there {_times(is_)}, not {_times(max(expected, 0))}"
        errors.check(is_ == expected, ENTITIES, (name,), words)


def _relations(errors: _Found, before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange) -> set[str]:
    """Check relations in prompts; return their kind if nothing can be determined about them."""
    renamed, gone, new = change.pairs
    changed = {triple for pair in renamed for triple in pair} | set(gone) | set(new)
    pairs = [*renamed, *((triple, triple) for triple in prompt.triples if triple not in changed)]
    comparable = [pair for pair in pairs if before.tells.relates(pair[0]) and after.tells.relates(pair[1])]
    for was, is_ in comparable:
        words = "is not in the picture, as it was in the source's" if was in before.triples else "came, unlike before"
        errors.check((was in before.triples) == (is_ in after.triples), RELATIONS, is_, words)
    for triple in gone:
        if prompt.triples[triple] or not (before.tells.relates(triple) and after.tells.relates(triple)):
            continue
        errors.check(
            triple in before.triples, RELATIONS, triple, "was to be removed and is not in the source's picture"
        )
        errors.check(
            triple not in after.triples, RELATIONS, triple, "was removed from the prompt and is in the picture"
        )
    for triple in new:
        if after.tells.relates(triple):
            errors.check(triple in after.triples, RELATIONS, triple, "was added and is not in the picture")
    undetermined = bool(pairs) and not comparable and not (gone or new)
    if undetermined or predicates_untold(change, before.tells) or predicates_untold(change, after.tells):
        return {RELATIONS}
    errors.judged.add(RELATIONS)
    return set()


# ---------------------------------------------------------------------------------------- the paper, and its code


def _paper(before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange, shape: str) -> JudgedPair:
    s, a = (told_classes(scene.names, before.tells, after.tells) for scene in (before, after))
    sr, ar = (told_predicates(scene.predicates, before.tells, after.tells) for scene in (before, after))
    e1, e2 = set(change.removed), set(change.added)
    k, kr = s & a, sr & ar
    holds: dict[str, Callable[[], tuple[bool, bool]]] = {
        SAME: lambda: (s == a, sr == ar),
        EXCHANGE: lambda: (k == s - e1 == a - e2, kr == sr == ar),  # equations 9 and 10
        REMOVAL: lambda: (k == a, kr == ar),  # equations 11 and 12
        ADDITION: lambda: (k == s, kr == sr),  # equations 13 and 14
        EXCHANGE_REMOVAL: lambda: (k == a - e2, kr == ar),
        EXCHANGE_ADDITION: lambda: (k == s - e1, kr == sr),
    }
    entities, relations = holds[shape]()
    return _of_sets(entities, relations, (s, a), (sr, ar), before, after, prompt, change)


def _released(before: SceneLook, after: SceneLook, prompt: Said, change: PoolChange, shape: str) -> JudgedPair:
    s, a = (told_classes(scene.ranked[:_TOP], before.tells, after.tells) for scene in (before, after))
    limit = _TOP_EXCHANGE if shape == EXCHANGE else _TOP
    sr, ar = (told_predicates(scene.predicates, before.tells, after.tells, limit) for scene in (before, after))
    e1, e2 = set(change.removed), set(change.added)
    pool = {name for name in prompt.names if before.tells.names(name) and after.tells.names(name)}
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
        relations = relations and {predicate for _, predicate, _ in change.pairs[2]} <= ar
    return _of_sets(entities, relations, (s, a), (sr, ar), before, after, prompt, change)


def _of_sets(
    entities: bool,
    relations: bool,
    classes: tuple[set[str], set[str]],
    predicates: tuple[set[str], set[str]],
    before: SceneLook,
    after: SceneLook,
    prompt: Said,
    change: PoolChange,
) -> JudgedPair:
    errors = _Found()
    words = "the sets of classes break the rule", "the sets of predicates break the rule"
    errors.check(entities, ENTITIES, sorted(classes[0] ^ classes[1]), words[0])
    errors.check(relations, RELATIONS, sorted(predicates[0] ^ predicates[1]), words[1])
    unknown = set()
    if not entities_told(before, after, prompt, change):
        unknown |= {ENTITIES}
    mute = any(tells.predicates is not None and not tells.predicates for tells in (before.tells, after.tells))
    if mute or any(predicates_untold(change, tells) for tells in (before.tells, after.tells)):
        unknown |= {RELATIONS}
    return errors.judgement(detectable=change_told(before, after, prompt, change), unknown=unknown)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


_PAIRS: dict[str, Callable[[SceneLook, SceneLook, Said, PoolChange, str], JudgedPair]] = {
    STRICT: _strict,
    PAPER: _paper,
    RELEASED: _released,
}
