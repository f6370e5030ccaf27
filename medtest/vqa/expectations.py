"""What a relation may do to an answer, and what follows for its verdict: the matrix question × relation.

The matrix is data (``expectations.yaml``) and a suite may override it. Two verdicts come of an answer, and both are
kept: against the model's own answer to the source (metamorphic, no truth needed) and against the truth (accuracy).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medtest.cases import Verdict
from medtest.errors import Mistake, UserMistakes, nearest_name
from medtest.vqa.answers.answer import Answer, State
from medtest.vqa.answers.compare import Change, Comparison, compare, compare_values
from medtest.vqa.answers.place import CELLS
from medtest.vqa.questions import Question, by_name, official
from medtest.vqa.values import NO, YES, Kind, Names, Range, Ranges, Value, names, ranges, read_value

FILE = Path(__file__).with_name("expectations.yaml")
_PLUS = re.compile(r"\+(?P<n>\d{1,3}|inserted)")
_AT_INSERTED = "@inserted"
LEAST_SHARE = 0.15
"""A cell of the 3 × 3 grid counts where it holds at least this share of a region."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What a relation put into the image.

    Attributes:
        count: How many things.
        names: Canonical names that would be right for them; empty where any is.
        cells: Cells of the 3 × 3 grid that they touch.
    """

    count: int = 1
    names: frozenset[str] = frozenset()
    cells: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict on one answer.

    Attributes:
        verdict: PASS, FAIL or SKIP; an ERROR is the runner's to give.
        reason: Why, one of :data:`REASONS`.
        comparison: The comparison it rests on; None where there was none.
    """

    verdict: Verdict
    reason: str
    comparison: Comparison | None = None


REASONS: tuple[str, ...] = (
    *(change.value for change in Change),
    *("refusal", "became", "did not become", "may change", "skip"),
    *("right", "wrong", "unparsed", "source unparsed", "source refused", "no truth", "nothing inserted"),
)
"""Every reason of a judgement."""

Matrix = Mapping[str, Mapping[str, Expectation]]
"""Relation, then name of the question; what is missing is ``invariant``."""


@cache
def default_matrix() -> Matrix:
    """Return the matrix as it ships."""
    import yaml

    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return _read(content, FILE.name)


def overridden(overrides: Mapping[str, object], where: str = "suite") -> Matrix:
    """Return the matrix with some cells replaced.

    Args:
        overrides: Relation, then name of the question, then rule, as in ``expectations.yaml``; ``all`` in place of a
            question's name stands for all 18 and gives way to what is named.
        where: File or place the overrides come from, for the message.

    Raises:
        UserMistakes: One report of everything that is not understood.
    """
    made = {relation: dict(cells) for relation, cells in default_matrix().items()}
    for relation, cells in _read(overrides, where).items():
        made.setdefault(relation, {}).update(cells)
    return made


def expectation(matrix: Matrix, relation: str, question: Question, *, part: str = "") -> Expectation:
    """Return the expectation of a pair; a question that is none of the 18 is ``invariant``.

    Args:
        matrix: The matrix.
        relation: The relation's id in the suite.
        question: The question.
        part: Name of the relation's part, whose cell holds where the id has none of its own.
    """
    for name in (relation, part):
        found = matrix.get(name, {}).get(question.name)
        if found is not None:
            return found
    return Expectation(rule=Rule.INVARIANT)


def _read(content: object, where: str) -> Matrix:
    if not isinstance(content, Mapping):
        raise UserMistakes([Mistake(where=where, key="expectations", found=repr(content)[:80], allowed="a mapping")])
    mistakes: list[Mistake] = []
    matrix: dict[str, dict[str, Expectation]] = {}
    every = {one.name: one for one in official()}
    for relation, cells in content.items():
        key = f"expectations.{relation}"
        if not isinstance(cells, Mapping):
            mistakes.append(Mistake(where=where, key=key, found=repr(cells)[:80], allowed="question: rule"))
            continue
        named = {str(name): rule for name, rule in cells.items() if name != "all"}
        given = {**(dict.fromkeys(every, cells["all"]) if "all" in cells else {}), **named}
        for name, rule in given.items():
            found = _cell(name, rule, where, f"{key}.{name}")
            if isinstance(found, Mistake):
                mistakes.append(found)
            else:
                matrix.setdefault(str(relation), {})[name] = found
    if mistakes:
        raise UserMistakes(mistakes[:20])
    return matrix


def _cell(name: str, rule: object, where: str, key: str) -> Expectation | Mistake:
    question = by_name(name)
    if question is None:
        known = ["all", *(one.name for one in official())]
        return Mistake(
            where=where, key=key, found=name[:80], allowed=", ".join(known), nearest=nearest_name(name, known)
        )
    text = " ".join(str(rule).split())
    if text in (Rule.INVARIANT.value, Rule.MAY_CHANGE.value, Rule.SKIP.value):
        return Expectation(rule=Rule(text))
    allowed_rules = [*(one.value for one in Rule if one != Rule.MUST_BECOME), f"{Rule.MUST_BECOME.value} VALUE"]
    wanted = text.removeprefix(Rule.MUST_BECOME.value).strip()
    if not text.startswith(Rule.MUST_BECOME.value) or not wanted:
        nearest = nearest_name(text, allowed_rules)
        return Mistake(where=where, key=key, found=text[:80], allowed=", ".join(allowed_rules), nearest=nearest)
    if not _fits(wanted, question.kind):
        allowed = f"a value of the type {question.kind.value}"
        if question.kind == Kind.COUNT:
            allowed += ", +N or +inserted"
        if question.kind == Kind.PLACE:
            allowed = f"@inserted, or of {', '.join(CELLS)}"
        return Mistake(where=where, key=key, found=wanted[:80], allowed=allowed)
    return Expectation(rule=Rule.MUST_BECOME, value=wanted)


def _fits(wanted: str, kind: Kind) -> bool:
    if wanted == _AT_INSERTED:
        return kind == Kind.PLACE
    if _PLUS.fullmatch(wanted):
        return kind == Kind.COUNT
    try:
        value = read_value(kind, wanted)
    except ValueError:
        return False
    if isinstance(value, Names) and kind == Kind.PLACE:
        return value.names <= set(CELLS)
    return not (isinstance(value, Names) and kind == Kind.YES_NO) or value.names <= {YES, NO}


# -------------------------------------------------------------------------------------------------------- verdicts


def judge_against_source(
    expected: Expectation,
    answer: Answer,
    source: Answer,
    *,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> Judgement:
    """Judge the answer to a follow-up by the model's own answer to the source.

    A refusal where the source gave an answer fails. What is unparsed on either side, and a source that refused, is
    skipped. Weaker, stronger and crossing intervals pass: only what excludes the source's answer is a flip.

    Args:
        expected: The cell of the matrix.
        answer: Answer to the follow-up.
        source: Answer to the source.
        inserted: What the relation put into the image, for ``+inserted`` and ``@inserted``.
        tolerance: King moves within which places count as the same.
    """
    open_case = _unjudged(expected, answer)
    if open_case is not None:
        return open_case
    if expected.rule == Rule.MUST_BECOME:
        return _became(expected, answer, source, inserted, tolerance)
    if source.state in (State.UNPARSED, State.REFUSAL):
        return Judgement(verdict=Verdict.SKIP, reason=_no_source(source))
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    found = compare(answer, source, tolerance=tolerance)
    if found is None:
        return Judgement(verdict=Verdict.SKIP, reason="unparsed")
    verdict = Verdict.FAIL if found.change == Change.FLIP else Verdict.PASS
    return Judgement(verdict=verdict, reason=found.change.value, comparison=found)


def judge_against_truth(
    expected: Expectation,
    answer: Answer,
    truth: Answer | None,
    *,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> Judgement:
    """Judge an answer by the truth: right where it has something in common with it (any-hit).

    ``must become`` changes the truth as it changes the source's answer. A refusal is wrong; unparsed is skipped.

    Args:
        expected: The cell of the matrix; ``invariant`` for the source image itself.
        answer: The answer.
        truth: The true answer to the source image; None where none is known.
        inserted: What the relation put into the image.
        tolerance: King moves within which places count as the same.
    """
    open_case = _unjudged(expected, answer)
    if open_case is not None:
        return open_case
    known = truth is not None and truth.state in (State.VALUE, State.NOT_RELEVANT)
    if expected.rule == Rule.MUST_BECOME:
        start = truth if known and truth is not None else Answer(kind=answer.kind, state=State.UNPARSED)
        found = _became(expected, answer, start, inserted, tolerance)
        if found.verdict == Verdict.SKIP:
            return Judgement(verdict=Verdict.SKIP, reason="no truth" if "source" in found.reason else found.reason)
        reason = "right" if found.verdict == Verdict.PASS else "wrong"
        return Judgement(verdict=found.verdict, reason=reason, comparison=found.comparison)
    if not known or truth is None:
        return Judgement(verdict=Verdict.SKIP, reason="no truth")
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    compared = compare(answer, truth, tolerance=tolerance)
    if compared is None:
        return Judgement(verdict=Verdict.SKIP, reason="unparsed")
    right = compared.any_hit
    return Judgement(
        verdict=Verdict.PASS if right else Verdict.FAIL, reason="right" if right else "wrong", comparison=compared
    )


def _unjudged(expected: Expectation, answer: Answer) -> Judgement | None:
    if expected.rule in (Rule.MAY_CHANGE, Rule.SKIP):
        return Judgement(verdict=Verdict.SKIP, reason=expected.rule.value)
    if answer.state == State.UNPARSED:
        return Judgement(verdict=Verdict.SKIP, reason="unparsed")
    return None


def _no_source(source: Answer) -> str:
    return "source refused" if source.state == State.REFUSAL else "source unparsed"


def _became(
    expected: Expectation, answer: Answer, source: Answer, inserted: Inserted | None, tolerance: int
) -> Judgement:
    at_inserted = expected.value == _AT_INSERTED
    needs_inserted = at_inserted or expected.value == "+inserted"
    if needs_inserted and (inserted is None or (at_inserted and not inserted.cells)):
        return Judgement(verdict=Verdict.SKIP, reason="nothing inserted")
    plus = _PLUS.fullmatch(expected.value)
    if plus is not None and source.state in (State.UNPARSED, State.REFUSAL):
        return Judgement(verdict=Verdict.SKIP, reason=_no_source(source))
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    if answer.value is None:
        return Judgement(verdict=Verdict.FAIL, reason="did not become")
    wanted = wanted_value(expected, answer.kind, source, inserted)
    found = compare_values(answer.value, wanted, answer.kind, tolerance=tolerance)
    did = _affirms(answer.value, wanted, inserted) if answer.kind == Kind.FINDINGS else found.any_hit
    reason = "became" if did else "did not become"
    return Judgement(verdict=Verdict.PASS if did else Verdict.FAIL, reason=reason, comparison=found)


def wanted_value(expected: Expectation, kind: Kind, source: Answer, inserted: Inserted | None) -> Value:
    """Return what ``must become`` asks for.

    Args:
        expected: A cell whose rule is ``must become``.
        kind: Type of the answer.
        source: The answer to the source, or the truth.
        inserted: What was inserted; it must have cells where the cell says ``@inserted``.
    """
    if expected.value == _AT_INSERTED and inserted is not None:
        return names(*inserted.cells)
    plus = _PLUS.fullmatch(expected.value)
    if plus is None:
        return read_value(kind, expected.value)
    more = int(plus["n"]) if plus["n"].isdigit() else (inserted.count if inserted is not None else 0)
    # A source that calls the question not relevant has none of what is counted.
    before = source.value.ranges if isinstance(source.value, Ranges) else (Range(0, 0),)
    return ranges(*(Range(one.low + more, one.high + more) for one in before))


def _affirms(value: Value, wanted: Value, inserted: Inserted | None) -> bool:
    """Say whether findings affirm what was inserted: by name where its names are known, at all where not."""
    if not isinstance(value, Names) or not isinstance(wanted, Names):
        return False
    if NO in wanted.names:
        return NO in value.names
    if NO in value.names:
        return False
    allowed = inserted.names if inserted is not None else frozenset()
    if YES in value.names or (not allowed and YES in wanted.names):
        return True
    return bool(value.names & (allowed or wanted.names))


def cells_of(mask: NDArray[np.bool_], *, share: float = LEAST_SHARE) -> frozenset[str]:
    """Return the cells of the 3 × 3 grid that a region lies in.

    Args:
        mask: bool H×W.
        share: A cell counts where it holds at least this share of the region.

    Returns:
        Names of cells; empty for an empty mask. The cell with the largest share is always among them.
    """
    rows, columns = np.nonzero(mask)
    if rows.size == 0:
        return frozenset()
    number = rows * 3 // mask.shape[0] * 3 + columns * 3 // mask.shape[1]
    parts = np.bincount(number, minlength=9) / rows.size
    return frozenset(CELLS[int(one)] for one in np.flatnonzero((parts >= share) | (parts == parts.max())))
