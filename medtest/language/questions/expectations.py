"""Verdicts on an answer under an expectation (:mod:`medtest.language.questions.matrix`).

There are two for each answer: against the model's own answer to the source (metamorphic, without truth) and against the
truth (accuracy).
"""

from __future__ import annotations

from dataclasses import dataclass

from medtest.core.cases import Effect, Json, Verdict
from medtest.language.questions.answers.compare import Change, Comparison, compare, compare_values
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.answers.kinds import KINDS
from medtest.language.questions.answers.values.answer import Answer, State
from medtest.language.questions.matrix import AT_INSERTED, PLUS, Expectation, Rule
from medtest.language.questions.values import NO, YES, Kind, Names, Range, Ranges, Value, names, ranges, read_value

LEAST_SHARE = 0.15
"""Smallest share of a region for which a cell of the 3 × 3 grid counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """Objects that a relation inserted into the image.

    Attributes:
        count: Number of objects.
        names: Canonical names that are right for them; empty if any is.
        cells: Cells of the 3 × 3 grid that they touch.
    """

    count: int = 1
    names: frozenset[str] = frozenset()
    cells: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Verdict on one answer.

    Attributes:
        verdict: PASS, FAIL or SKIP; only the runner gives ERROR.
        reason: Reason, one of :data:`REASONS`.
        comparison: Comparison behind the verdict; None without one.
    """

    verdict: Verdict
    reason: str
    comparison: Comparison | None = None


REASONS: tuple[str, ...] = (
    *(change.value for change in Change),
    *("refusal", "became", "did not become", "may change", "skip", "must change", "must deny"),
    *("right", "wrong", "unparsed", "source unparsed", "source refused", "no truth", "nothing inserted"),
)
"""All reasons of judgements."""


def judge_against_source(
    expected: Expectation,
    answer: Answer,
    source: Answer,
    *,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> Judgement:
    """Judge the answer to a follow-up by the model's own answer to the source.

    A refusal fails if the source was answered. Unparsed answers on either side, and a refused source, are skipped.
    Weaker, stronger and crossing intervals pass: only an answer that excludes the source's is a flip.

    Args:
        expected: Cell of the matrix.
        answer: Answer to the follow-up.
        source: Answer to the source.
        inserted: Objects that the relation inserted, for ``+inserted`` and ``@inserted``.
        tolerance: King moves within which places count as equal.
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
    comparison = compare(answer, source, tolerance=tolerance)
    if comparison is None:
        return Judgement(verdict=Verdict.SKIP, reason="unparsed")
    verdict = Verdict.FAIL if comparison.change == Change.FLIP else Verdict.PASS
    return Judgement(verdict=verdict, reason=comparison.change.value, comparison=comparison)


def judge_against_truth(
    expected: Expectation,
    answer: Answer,
    truth: Answer | None,
    *,
    inserted: Inserted | None = None,
    tolerance: int = 0,
) -> Judgement:
    """Judge an answer by the truth: right if it shares a value with it (any-hit).

    ``must become`` changes the truth like the source's answer. A refusal is wrong; unparsed is skipped.

    Args:
        expected: Cell of the matrix; ``invariant`` for the source image itself.
        answer: The answer.
        truth: True answer to the source image; None if unknown.
        inserted: Objects that the relation inserted.
        tolerance: King moves within which places count as equal.
    """
    open_case = _unjudged(expected, answer)
    if open_case is not None:
        return open_case
    has_truth = truth is not None and truth.state in (State.VALUE, State.NOT_RELEVANT)
    if expected.rule == Rule.MUST_BECOME:
        start = truth if has_truth and truth is not None else Answer(kind=answer.kind, state=State.UNPARSED)
        became = _became(expected, answer, start, inserted, tolerance, by_name=True)
        if became.verdict == Verdict.SKIP:
            return Judgement(verdict=Verdict.SKIP, reason="no truth" if "source" in became.reason else became.reason)
        reason = "right" if became.verdict == Verdict.PASS else "wrong"
        return Judgement(verdict=became.verdict, reason=reason, comparison=became.comparison)
    if not has_truth or truth is None:
        return Judgement(verdict=Verdict.SKIP, reason="no truth")
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    comparison = compare(answer, truth, tolerance=tolerance)
    if comparison is None:
        return Judgement(verdict=Verdict.SKIP, reason="unparsed")
    right = comparison.any_hit
    return Judgement(
        verdict=Verdict.PASS if right else Verdict.FAIL, reason="right" if right else "wrong", comparison=comparison
    )


def _unjudged(expected: Expectation, answer: Answer) -> Judgement | None:
    if expected.rule not in (Rule.INVARIANT, Rule.MUST_BECOME):
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
    if problem := without_target(expected, source, inserted):
        return Judgement(verdict=Verdict.SKIP, reason=problem)
    if answer.state == State.REFUSAL:
        return Judgement(verdict=Verdict.FAIL, reason="refusal")
    if answer.value is None:
        return Judgement(verdict=Verdict.FAIL, reason="did not become")
    target = wanted_value(expected, answer.kind, source, inserted)
    comparison = compare_values(answer.value, target, answer.kind, tolerance=tolerance)
    did = comparison.any_hit
    if KINDS[answer.kind].unnamed:
        earlier = source.value.names if isinstance(source.value, Names) else frozenset[str]()
        did = _affirms(answer.value, target, inserted, before=None if by_name else earlier)
    reason = "became" if did else "did not become"
    return Judgement(verdict=Verdict.PASS if did else Verdict.FAIL, reason=reason, comparison=comparison)


def without_target(expected: Expectation, source: Answer, inserted: Inserted | None) -> str:
    """Return the reason why the value required by ``must become`` is unknown, or ""."""
    at_inserted = expected.value == AT_INSERTED
    if (at_inserted or expected.value == "+inserted") and (inserted is None or (at_inserted and not inserted.cells)):
        return "nothing inserted"
    has_source = source.state not in (State.UNPARSED, State.REFUSAL)
    return "" if has_source or PLUS.fullmatch(expected.value) is None else _no_source(source)


def wanted_value(expected: Expectation, kind: Kind, source: Answer, inserted: Inserted | None) -> Value:
    """Return the value required by ``must become``.

    Args:
        expected: A cell with the rule ``must become``.
        kind: Type of the answer.
        source: Answer to the source, or the truth.
        inserted: The inserted objects; they must have cells if the expectation is ``@inserted``.
    """
    if expected.value == AT_INSERTED and inserted is not None:
        return names(*inserted.cells)
    plus = PLUS.fullmatch(expected.value)
    if plus is None:
        return read_value(kind, expected.value)
    added = int(plus["n"]) if plus["n"].isdigit() else (inserted.count if inserted is not None else 0)
    # If the source's answer is "not relevant", the count is 0.
    intervals = source.value.ranges if isinstance(source.value, Ranges) else (Range(0, 0),)
    return ranges(*(Range(interval.low + added, interval.high + added) for interval in intervals))


def _affirms(value: Value, target: Value, inserted: Inserted | None, *, before: frozenset[str] | None) -> bool:
    """Return True if findings affirm the inserted objects.

    A yes without a name does, and any name if the names of the inserted objects are unknown. If they are known, one of
    them does, and compared with the answer to the source any new name: the inserted object was seen, if misnamed.
    Against the truth (None) another name is wrong.
    """
    if not isinstance(value, Names) or not isinstance(target, Names):
        return False
    if NO in target.names:
        return NO in value.names
    if NO in value.names:
        return False
    allowed = inserted.names if inserted is not None else frozenset()
    if YES in value.names or (not allowed and YES in target.names):
        return True
    new = allowed and before is not None and value.names - before
    return bool(new or value.names & (allowed or target.names))


def inserted_of(effect: Effect) -> Inserted | None:
    """Return the objects that an effect inserted, or None.

    Their cells are those with a sufficient share of the objects (``grid``, nine shares row by row) and the one with the
    largest; without a grid those of the ``places``.

    Args:
        effect: Effect of kind ``add``: ``count``, and ``grid`` or ``places`` (x and y as fractions of the image's
            sides);
            ``names``, if the right names are known.
    """
    if effect.kind != "add":
        return None
    data = effect.data
    count = data.get("count", 1)
    names = data.get("names")
    return Inserted(
        count=int(count) if isinstance(count, int | float) else 1,
        names=frozenset(str(name) for name in names) if isinstance(names, list) else frozenset(),
        cells=_cells(data.get("grid"), data.get("places")),
    )


def _cells(grid: Json, places: Json) -> frozenset[str]:
    shares = [float(share) for share in grid if isinstance(share, int | float)] if isinstance(grid, list) else []
    if len(shares) == len(CELLS) and max(shares) > 0:
        largest = max(shares)
        return frozenset(
            cell for cell, share in zip(CELLS, shares, strict=True) if share >= LEAST_SHARE or share == largest
        )
    cells = [_cell(place) for place in places] if isinstance(places, list) else []
    return frozenset(cell for cell in cells if cell)


def _cell(place: Json) -> str:
    if not isinstance(place, list) or len(place) != 2:
        return ""
    x, y = place
    if not isinstance(x, int | float) or not isinstance(y, int | float):
        return ""
    column, row = (min(max(int(3 * coordinate), 0), 2) for coordinate in (x, y))
    return CELLS[3 * row + column]
