"""The matrix question × effect: what a relation may do to an answer.

It is data: ``expectations.yaml`` by the effects that relations say they have, and what a suite states by the id of a
relation, or for several by the name of their part; an id that is also the name of another part means the relation of
that id and nothing else. What a suite states wins.

Questions go by their short name (those of the user's own are ``q_`` and eight digits); ``all`` and ``all_<type>``
(``all_count``) stand for every question, or for every question with answers of that type. What is named more closely
wins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.questions import Question, by_name, official
from medtest.language.questions.values import Kind, Names, read_value

FILE = Path(__file__).with_name("expectations.yaml")
PLUS = re.compile(r"\+(?P<n>\d{1,3}|inserted)")
AT_INSERTED = "@inserted"
ALL = "all"
OF_A_TYPE: Mapping[str, Kind] = {f"{ALL}_{kind.value}": kind for kind in Kind}
"""Keys that stand for every question of a type."""
_OWN = re.compile(r"q_[0-9a-f]{8}")
_OWN_KINDS = (Kind.YES_NO, Kind.TEXT)
"""Types that a question can have which is none of the 18 (:func:`medtest.language.questions.questions.question_of`)."""


class Rule(StrEnum):
    """What is expected of an answer after a relation."""

    INVARIANT = "invariant"
    MUST_BECOME = "must become"
    MAY_CHANGE = "may change"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One cell of the matrix.

    Attributes:
        rule: The rule.
        value: What ``must become`` asks for, as written: a canonical value, ``+inserted``, ``+N`` or ``@inserted``.
    """

    rule: Rule
    value: str = ""

    def __str__(self) -> str:
        return f"{self.rule.value} {self.value}".strip()

    @classmethod
    def read(cls, text: str) -> Expectation:
        """Return the expectation that ``str`` gave.

        Raises:
            ValueError: The text names no rule.
        """
        rule = next((one for one in Rule if text == one.value or text.startswith(f"{one.value} ")), None)
        if rule is None:
            raise ValueError(f"no rule: {text!r}")
        return cls(rule=rule, value=text.removeprefix(rule.value).strip())


Cells = Mapping[str, Mapping[str, Expectation]]
"""Effect or relation, then name of a question, ``all`` or ``all_<type>``."""

GRAVITY = (Rule.INVARIANT, Rule.MUST_BECOME, Rule.MAY_CHANGE, Rule.SKIP)
"""Rules from the one that asks most of an answer to the one that asks nothing: of several effects the last counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """What is expected; what is in neither part is ``invariant``.

    Attributes:
        shipped: medtest's own, by effect.
        stated: A suite's, by id of a relation or name of its part.
    """

    shipped: Cells = field(default_factory=dict)
    stated: Cells = field(default_factory=dict)

    def cells(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield every cell: whose it is (``shipped`` or ``stated``), effect or relation, question, expectation."""
        for whose, cells in (("shipped", self.shipped), ("stated", self.stated)):
            for key, own in cells.items():
                for name, one in own.items():
                    yield whose, key, name, str(one)


@cache
def default_matrix() -> Matrix:
    """Return the matrix as it ships."""
    import yaml

    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return Matrix(shipped=_read(content, FILE.name))


def overridden(overrides: Mapping[str, object], where: str = "suite") -> Matrix:
    """Return the matrix with some cells replaced.

    Args:
        overrides: Relation, then question, then rule, as in ``expectations.yaml``. A question is one of the 18 by its
            short name, one of the user's own by its name in tables (``q_`` and eight digits), ``all`` questions, or
            those of a type (``all_count``).
        where: File or place the overrides come from, for the message.

    Raises:
        UserMistakes: One report of everything that is not understood.
    """
    return Matrix(shipped=default_matrix().shipped, stated=_read(overrides, where))


def expectation(
    matrix: Matrix,
    relation: str,
    question: Question,
    *,
    effects: Collection[str] = (),
    relations: Mapping[str, str] | None = None,
) -> Expectation:
    """Return the expectation of a pair.

    Args:
        matrix: The matrix.
        relation: The relation's id in the suite.
        question: The question.
        effects: What the relation says it does to the picture. One that the matrix does not know may change every
            answer; of several the gravest rule counts (:data:`GRAVITY`).
        relations: Ids of all of the suite's relations with the names of their parts. What is stated of a part holds
            where the id has nothing of its own, unless another relation has the part's name for its id and is of
            another part: then it is meant for that one. Without them, an id is the name of its part.
    """
    found = stated(matrix, relation, question, relations=relations)
    if found is not None:
        return found
    unknown = Expectation(rule=Rule.MAY_CHANGE)
    rules = [
        (_cell_of(matrix.shipped[effect], question) if effect in matrix.shipped else unknown)
        for effect in sorted(effects)
    ]
    named = [one for one in rules if one is not None]
    return max(named, key=lambda one: GRAVITY.index(one.rule), default=Expectation(rule=Rule.INVARIANT))


def stated(
    matrix: Matrix, relation: str, question: Question, *, relations: Mapping[str, str] | None = None
) -> Expectation | None:
    """Return what the suite states of a pair, None where it says nothing; arguments as of :func:`expectation`."""
    parts = relations or {}
    part = parts.get(relation, relation)
    named = [relation] if parts.get(part, part) != part else [relation, part]
    cells = (_cell_of(matrix.stated.get(name, {}), question) for name in named)
    return next((one for one in cells if one is not None), None)


def _cell_of(cells: Mapping[str, Expectation], question: Question) -> Expectation | None:
    """Return the cell that names a question most closely."""
    names = (question.name, f"{ALL}_{question.kind.value}", ALL)
    return next((cells[name] for name in names if name in cells), None)


def own_questions(matrix: Matrix) -> list[tuple[str, str]]:
    """Return relation and name of every cell of a question that is none of the 18, as a suite states them."""
    return [(relation, name) for relation, cells in matrix.stated.items() for name in cells if _OWN.fullmatch(name)]


def _read(content: object, where: str) -> Cells:
    if not isinstance(content, Mapping):
        raise Mistake(where=where, key="expectations", found=repr(content)[:80], allowed="a mapping").as_error()
    mistakes: list[Mistake] = []
    matrix: dict[str, dict[str, Expectation]] = {}
    for relation, cells in content.items():
        key = f"expectations.{relation}"
        if not isinstance(cells, Mapping):
            mistakes.append(Mistake(where=where, key=key, found=repr(cells)[:80], allowed="question: rule"))
            continue
        for name, rule in cells.items():
            found = _cell(str(name), rule, where, f"{key}.{name}")
            if isinstance(found, Mistake):
                mistakes.append(found)
            else:
                matrix.setdefault(str(relation), {})[str(name)] = found
    if mistakes:
        raise UserMistakes(mistakes[:20])
    return matrix


def _kinds(name: str) -> tuple[Kind, ...]:
    """Return the types of the questions that a key stands for; none where it is no question."""
    if name == ALL:
        return tuple(dict.fromkeys(one.kind for one in official()))
    if name in OF_A_TYPE:
        return (OF_A_TYPE[name],)
    question = by_name(name)
    if question is not None:
        return (question.kind,)
    return _OWN_KINDS if _OWN.fullmatch(name) else ()


def _cell(name: str, rule: object, where: str, key: str) -> Expectation | Mistake:
    kinds = _kinds(name)
    if not kinds:
        known = [ALL, *(one.name for one in official()), *OF_A_TYPE]
        shown = ", ".join(known[: -len(OF_A_TYPE)])
        allowed = f"{shown}; {ALL}_ and a type ({', '.join(Kind)}); for a question of your own q_ and its"
        nearest = nearest_name("_".join(name.lower().split()), known)
        return Mistake(
            where=where, key=key, found=name[:80], allowed=f"{allowed} eight digits as in tables", nearest=nearest
        )
    text = " ".join(str(rule).split())
    if text in (Rule.INVARIANT.value, Rule.MAY_CHANGE.value, Rule.SKIP.value):
        return Expectation(rule=Rule(text))
    allowed_rules = [*(one.value for one in Rule if one != Rule.MUST_BECOME), f"{Rule.MUST_BECOME.value} VALUE"]
    wanted = text.removeprefix(Rule.MUST_BECOME.value).strip()
    if not text.startswith(Rule.MUST_BECOME.value) or not wanted:
        nearest = nearest_name(text, allowed_rules)
        return Mistake(where=where, key=key, found=text[:80], allowed=", ".join(allowed_rules), nearest=nearest)
    own = kinds == _OWN_KINDS
    unfit = [kind for kind in kinds if not _fits(wanted, kind)]
    if unfit and not (own and len(unfit) < len(kinds)):
        return Mistake(where=where, key=key, found=wanted[:80], allowed=_values(unfit[0]))
    return Expectation(rule=Rule.MUST_BECOME, value=wanted)


def _values(kind: Kind) -> str:
    if KINDS[kind].on_grid:
        return f"@inserted, or of {', '.join(CELLS)}"
    return f"a value of the type {kind.value}" + (", +N or +inserted" if KINDS[kind].counts else "")


def _fits(wanted: str, kind: Kind) -> bool:
    if wanted == AT_INSERTED:
        return KINDS[kind].on_grid
    if PLUS.fullmatch(wanted):
        return KINDS[kind].counts
    try:
        value = read_value(kind, wanted)
    except ValueError:
        return False
    choices = KINDS[kind].choices
    return choices is None or (isinstance(value, Names) and value.names <= choices)
