"""Matrix question × effect: how a relation may change an answer.

Its data are ``expectations.yaml`` by the declared effects of relations, and the expectations in a suite by the id of a
relation, or for several by the name of their part; an id that is also the name of another part refers only to the
relation with that id. The suite's expectations take precedence.

Questions are identified by short name (user-defined ones are ``q_`` and eight digits); ``all`` and ``all_<type>``
(``all_count``) refer to every question, or to every question with answers of that type. More specific names take
precedence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files.paths import read_yaml
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.questions import Question, by_name, official
from medtest.language.questions.values import Kind, Names, read_value

FILE = Path(__file__).with_name("expectations.yaml")
PLUS = re.compile(r"\+(?P<n>\d{1,3}|inserted)")
AT_INSERTED = "@inserted"
ALL = "all"
OF_A_TYPE: Mapping[str, Kind] = {f"{ALL}_{kind.value}": kind for kind in Kind}
"""Keys that refer to every question of a type."""
_OWN = re.compile(r"q_[0-9a-f]{8}")
_OWN_KINDS = (Kind.YES_NO, Kind.TEXT)
"""Types of user-defined questions (:func:`medtest.language.questions.questions.question_of`)."""


class Rule(StrEnum):
    """Rule for an answer under a relation."""

    INVARIANT = "invariant"
    MUST_BECOME = "must become"
    MAY_CHANGE = "may change"
    SKIP = "skip"
    MUST_CHANGE = "must change"
    MUST_DENY = "must deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One cell of the matrix.

    Attributes:
        rule: The rule.
        value: Target of ``must become``, as written: a canonical value, ``+inserted``, ``+N`` or ``@inserted``.
    """

    rule: Rule
    value: str = ""

    def __str__(self) -> str:
        return f"{self.rule.value} {self.value}".strip()

    @classmethod
    def read(cls, text: str) -> Expectation:
        """Return the expectation in a text from ``str``.

        Raises:
            ValueError: The text names no rule.
        """
        rule = next(
            (candidate for candidate in Rule if text == candidate.value or text.startswith(f"{candidate.value} ")), None
        )
        if rule is None:
            raise ValueError(f"no rule: {text!r}")
        return cls(rule=rule, value=text.removeprefix(rule.value).strip())


Cells = Mapping[str, Mapping[str, Expectation]]
"""Expectations by effect or relation, then by name of a question, ``all`` or ``all_<type>``."""

GRAVITY = (Rule.INVARIANT, Rule.MUST_BECOME, Rule.MAY_CHANGE, Rule.SKIP, Rule.MUST_CHANGE, Rule.MUST_DENY)
"""Rules in order of decreasing strictness; of several effects the last one in this order counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Expectations; anything missing from both parts is ``invariant``.

    Attributes:
        shipped: medtest's expectations, by effect.
        stated: Expectations of a suite, by id of a relation or name of its part.
    """

    shipped: Cells = field(default_factory=dict)
    stated: Cells = field(default_factory=dict)

    def cells(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield every cell: origin (``shipped`` or ``stated``), effect or relation, question, expectation."""
        for origin, cells in (("shipped", self.shipped), ("stated", self.stated)):
            for key, by_question in cells.items():
                for name, cell in by_question.items():
                    yield origin, key, name, str(cell)


@cache
def default_matrix() -> Matrix:
    """Return medtest's matrix."""
    content = read_yaml(FILE)
    return Matrix(shipped=_read(content, FILE.name))


def overridden(overrides: Mapping[str, object], where: str = "suite") -> Matrix:
    """Return the matrix with some cells replaced.

    Args:
        overrides: Relation, then question, then rule, as in ``expectations.yaml``. A question is one of the 18 by its
            short
            name, a user-defined one by its name in tables (``q_`` and eight digits), ``all`` questions, or those of a
                type
            (``all_count``).
        where: File or location of the overrides, for messages.

    Raises:
        UserMistakes: One report of all invalid entries.
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
    """Return the expectation for a relation and a question.

    Args:
        matrix: The matrix.
        relation: Id of the relation in the suite.
        question: The question.
        effects: Declared effects of the relation on the picture. An effect unknown to the matrix may change every
            answer;
            of several the last rule in the order of :data:`GRAVITY` counts.
        relations: Ids of all of the suite's relations with the names of their parts. Expectations for a part apply if
            the
            id has none, unless another relation has the part's name as its id and a different part: then they refer to
                that
            relation. Without them, an id is the name of its part.
    """
    explicit = stated(matrix, relation, question, relations=relations)
    if explicit is not None:
        return explicit
    unknown = Expectation(rule=Rule.MAY_CHANGE)
    rules = [
        (_cell_of(matrix.shipped[effect], question) if effect in matrix.shipped else unknown)
        for effect in sorted(effects)
    ]
    cells = [rule for rule in rules if rule is not None]
    return max(cells, key=lambda cell: GRAVITY.index(cell.rule), default=Expectation(rule=Rule.INVARIANT))


def stated(
    matrix: Matrix, relation: str, question: Question, *, relations: Mapping[str, str] | None = None
) -> Expectation | None:
    """Return the suite's expectation for a pair, or None; arguments as in :func:`expectation`."""
    parts = relations or {}
    part = parts.get(relation, relation)
    names = [relation] if parts.get(part, part) != part else [relation, part]
    cells = (_cell_of(matrix.stated.get(name, {}), question) for name in names)
    return next((cell for cell in cells if cell is not None), None)


def _cell_of(cells: Mapping[str, Expectation], question: Question) -> Expectation | None:
    """Return the most specific cell for a question."""
    names = (question.name, f"{ALL}_{question.kind.value}", ALL)
    return next((cells[name] for name in names if name in cells), None)


def own_questions(matrix: Matrix) -> list[tuple[str, str]]:
    """Return relation and name of every cell in the suite for a user-defined question."""
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
            cell = _cell(str(name), rule, where, f"{key}.{name}")
            if isinstance(cell, Mistake):
                mistakes.append(cell)
            else:
                matrix.setdefault(str(relation), {})[str(name)] = cell
    if mistakes:
        raise UserMistakes(mistakes[:20])
    return matrix


def _kinds(name: str) -> tuple[Kind, ...]:
    """Return the types of the questions to which a key refers; empty for an unknown key."""
    if name == ALL:
        return tuple(dict.fromkeys(official_question.kind for official_question in official()))
    if name in OF_A_TYPE:
        return (OF_A_TYPE[name],)
    question = by_name(name)
    if question is not None:
        return (question.kind,)
    return _OWN_KINDS if _OWN.fullmatch(name) else ()


def _cell(name: str, rule: object, where: str, key: str) -> Expectation | Mistake:
    kinds = _kinds(name)
    if not kinds:
        names = [ALL, *(official_question.name for official_question in official()), *OF_A_TYPE]
        listing = ", ".join(names[: -len(OF_A_TYPE)])
        allowed = f"{listing}; {ALL}_ and a type ({', '.join(Kind)}); for a question of your own q_ and its"
        nearest = nearest_name("_".join(name.lower().split()), names)
        return Mistake(
            where=where, key=key, found=name[:80], allowed=f"{allowed} eight digits as in tables", nearest=nearest
        )
    text = " ".join(str(rule).split())
    if text in {rule.value for rule in Rule} - {Rule.MUST_BECOME.value}:
        return Expectation(rule=Rule(text))
    allowed_rules = [
        *(candidate.value for candidate in Rule if candidate != Rule.MUST_BECOME),
        f"{Rule.MUST_BECOME.value} VALUE",
    ]
    target = text.removeprefix(Rule.MUST_BECOME.value).strip()
    if not text.startswith(Rule.MUST_BECOME.value) or not target:
        nearest = nearest_name(text, allowed_rules)
        return Mistake(where=where, key=key, found=text[:80], allowed=", ".join(allowed_rules), nearest=nearest)
    user_defined = kinds == _OWN_KINDS
    unfit = [kind for kind in kinds if not _fits(target, kind)]
    if unfit and not (user_defined and len(unfit) < len(kinds)):
        return Mistake(where=where, key=key, found=target[:80], allowed=_values(unfit[0]))
    return Expectation(rule=Rule.MUST_BECOME, value=target)


def _values(kind: Kind) -> str:
    if KINDS[kind].on_grid:
        return f"@inserted, or of {', '.join(CELLS)}"
    return f"a value of the type {kind.value}" + (", +N or +inserted" if KINDS[kind].counts else "")


def _fits(target: str, kind: Kind) -> bool:
    if target == AT_INSERTED:
        return KINDS[kind].on_grid
    if PLUS.fullmatch(target):
        return KINDS[kind].counts
    try:
        value = read_value(kind, target)
    except ValueError:
        return False
    choices = KINDS[kind].choices
    return choices is None or (isinstance(value, Names) and value.names <= choices)
