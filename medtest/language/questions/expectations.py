"""Verdicts on an answer, given what is expected of it (:mod:`medtest.language.questions.matrix`).

Two come of an answer, and both are kept: against the model's own answer to the source (metamorphic, no truth needed)
and against the truth (accuracy).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Verdict
from medtest.language.questions.answers.compare import Change, Comparison, compare, compare_values
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.matrix import AT_INSERTED, PLUS, Expectation, Rule
from medtest.language.questions.values import NO, YES, Kind, Names, Range, Ranges, Value, names, ranges, read_value

LEAST_SHARE = 0.15
"""A cell of the 3 × 3 grid counts where it holds at least this share of a region."""


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
        found = _became(expected, answer, start, inserted, tolerance, by_name=True)
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
    expected: Expectation,
    answer: Answer,
    source: Answer,
    inserted: Inserted | None,
    tolerance: int,
    *,
    by_name: bool = False,
) -> Judgement:
    at_inserted = expected.value == AT_INSERTED
    needs_inserted = at_inserted or expected.value == "+inserted"
    if needs_inserted and (inserted is None or (at_inserted and not inserted.cells)):
        return Judgement(verdict=Verdict.SKIP, reason="nothing inserted")
    plus = PLUS.fullmatch(expected.value)
    if plus is not None and source.state in (State.UNPARSED, State.REFUSAL):
        return Judgement(verdict=Verdict.SKIP, reason=_no_source(source))
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    if answer.value is None:
        return Judgement(verdict=Verdict.FAIL, reason="did not become")
    wanted = wanted_value(expected, answer.kind, source, inserted)
    found = compare_values(answer.value, wanted, answer.kind, tolerance=tolerance)
    did = found.any_hit
    if KINDS[answer.kind].unnamed:
        earlier = source.value.names if isinstance(source.value, Names) else frozenset[str]()
        did = _affirms(answer.value, wanted, inserted, before=None if by_name else earlier)
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
    if expected.value == AT_INSERTED and inserted is not None:
        return names(*inserted.cells)
    plus = PLUS.fullmatch(expected.value)
    if plus is None:
        return read_value(kind, expected.value)
    more = int(plus["n"]) if plus["n"].isdigit() else (inserted.count if inserted is not None else 0)
    # A source that calls the question not relevant has none of what is counted.
    before = source.value.ranges if isinstance(source.value, Ranges) else (Range(0, 0),)
    return ranges(*(Range(one.low + more, one.high + more) for one in before))


def _affirms(value: Value, wanted: Value, inserted: Inserted | None, *, before: frozenset[str] | None) -> bool:
    """Say whether findings affirm what was inserted.

    A yes without a name does, and where the names of what was inserted are not known any name. Where they are known,
    one of them does, and beside the answer to the source (``before``) any name that was not in it: what was pasted is
    seen, if called something else. Against the truth (None) another name is wrong.
    """
    if not isinstance(value, Names) or not isinstance(wanted, Names):
        return False
    if NO in wanted.names:
        return NO in value.names
    if NO in value.names:
        return False
    allowed = inserted.names if inserted is not None else frozenset()
    if YES in value.names or (not allowed and YES in wanted.names):
        return True
    new = allowed and before is not None and value.names - before
    return bool(new or value.names & (allowed or wanted.names))


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
