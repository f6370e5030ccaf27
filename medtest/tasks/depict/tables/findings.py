"""Table ``findings.csv``: what was ordered of each finding and what was seen, for orders of medical pictures.

Three rates of a finding, each over all pictures, repeats among them, in which the reader can judge it: ``missed``, of
the pictures whose prompt orders it; ``drawn``, of those whose prompt excludes it; ``wrong_side``, of those whose prompt
orders it on one side of the patient and in which the reader sees it on one side. Findings that a prompt calls uncertain
are in none.

Corrected rates are Rogan and Gladen's by the reader's card, with the intervals of Lang and Reiczigel, which include the
card's own error (:func:`~medtest.results.cube.intervals.corrected_share`). Pictures of one prompt count as as many
independent ones as the interval of the measured rate allows. Sides are corrected by the card's row for the finding's
side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from medtest.core.deferred import pd
from medtest.core.scenes import SIDES
from medtest.language.orders import vocabulary
from medtest.readers.pictures.card import Card, CardRow
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Places
from medtest.results.cube.intervals import corrected_share, effective_cases
from medtest.results.cube.rates import WILSON, WILSON_CLUSTERS, Rates, decimals, rates
from medtest.tasks.depict.tables.cases import DepictedCases
from medtest.tasks.depict.views import SceneLook, look_of, said_of

FINDING_COLUMNS = columns_in(__file__, "findings")
MISSED, DRAWN, WRONG_SIDE = "missed", "drawn", "wrong_side"
RATES: Mapping[str, str] = {MISSED: "ordered", DRAWN: "negated", WRONG_SIDE: "sided"}
"""Column with the number of pictures of each rate."""
LEFT, RIGHT, BILATERAL = SIDES
_UNKNOWN = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class FindingCase:
    """One finding in one picture.

    Attributes:
        finding: The finding.
        rate: One of :data:`RATES`.
        wrong: Whether it counts in the rate's numerator.
        side: Side that the prompt orders; "" for none.
    """

    finding: str
    rate: str
    wrong: bool
    side: str = ""


def finding_cases(cases: DepictedCases) -> tuple[list[tuple[int, FindingCase]], Counter[str], Counter[str]]:
    """Return the findings of all pictures whose prompts are orders.

    Returns:
        What is judged, with the index of its picture; the number of pictures by finding in which the reader cannot
        judge whether it is there; and by finding that was ordered on one side and is seen on both.
    """
    judged: list[tuple[int, FindingCase]] = []
    untold: Counter[str] = Counter()
    both: Counter[str] = Counter()
    for row in np.flatnonzero(cases.has_scene & cases.orders).tolist():
        of_picture, unseen, on_both = _judged(cases.pool[row], cases.scene[row], cases.tells[row])
        judged += [(row, case) for case in of_picture]
        untold.update(unseen)
        both.update(on_both)
    return judged, untold, both


@lru_cache(maxsize=20_000)
def _judged(pool: str, scene: str, tells: str) -> tuple[list[FindingCase], list[str], list[str]]:
    """Return the judged findings of a picture, those that cannot be judged, and those on both sides instead of one."""
    prompt, look = said_of(pool), look_of(scene, tells)
    judged: list[FindingCase] = []
    untold = [name for name in (*prompt.names, *prompt.absent) if not look.tells.names(name)]
    both = []
    for name in prompt.names:
        if not look.tells.names(name):
            continue
        judged.append(FindingCase(name, MISSED, look.names[name] == 0))
        ordered = _sides([attribute for finding, attribute in prompt.attributes if finding == name])
        read = sides_of(look, name)
        if len(ordered) == 1 and read and look.tells.describes(LEFT, name):
            (side,) = ordered
            if len(read) == 2:
                both.append(name)
            else:
                judged.append(FindingCase(name, WRONG_SIDE, read != ordered, side))
    judged += [
        FindingCase(name, DRAWN, look.names[name] > 0) for name in sorted(prompt.absent) if look.tells.names(name)
    ]
    return judged, untold, both


def sides_of(look: SceneLook, name: str) -> set[str]:
    """Return the patient's sides, left and right, on which a finding is seen."""
    return _sides([attribute for finding, attribute in look.attributes if finding == name])


def _sides(attributes: Sequence[str]) -> set[str]:
    return {LEFT, RIGHT} if BILATERAL in attributes else {LEFT, RIGHT}.intersection(attributes)


def findings_table(cases: DepictedCases, card: Card | None = None) -> pd.DataFrame:
    """Return a row for each finding that prompts order or exclude, with exactly :data:`FINDING_COLUMNS`.

    Rows named ``all`` take the findings of one kind of picture together and are not corrected. Shares are in [0, 1].

    Args:
        cases: Cases of one system; the table is empty unless their prompts are orders.
        card: Card of the reader.
    """
    judged, untold, both = finding_cases(cases)
    concerned = {case.finding for _, case in judged} | untold.keys()
    keys = list(_row_keys(concerned))
    places = {finding: [at for at, (_, names) in enumerate(keys) if finding in names] for finding in concerned}
    if not keys:
        return pd.DataFrame(columns=list(FINDING_COLUMNS))
    table = _measured(cases, judged, places, len(keys))
    records = []
    for at, ((modality, name), names) in enumerate(keys):
        record: dict[str, Any] = {"modality": modality, "finding": name}
        record["cannot_tell"] = sum(untold[finding] for finding in names)
        record["both_sides"] = sum(both[finding] for finding in names)
        for column, rate in enumerate(RATES):
            own = [case for _, case in judged if case.rate == rate and case.finding in names]
            test = {} if name == ALL or card is None else _test_of(card, name, rate, own)
            record |= _columns(rate, own, table, (0, at, column), test)
        record["seen"] = record[RATES[MISSED]] - record[MISSED]
        records.append({**record, **_of_card(card, name)})
    return pd.DataFrame(records, columns=list(FINDING_COLUMNS))


def _row_keys(concerned: set[str]) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Yield kind of picture and name of each row, with the findings that it counts."""
    for modality, words in vocabulary().modalities.items():
        own = [name for name in words.findings if name in concerned]
        yield from (((modality, name), frozenset({name})) for name in own)
        if len(own) > 1:
            yield (modality, ALL), frozenset(own)


def _measured(
    cases: DepictedCases,
    judged: Sequence[tuple[int, FindingCase]],
    places: Mapping[str, Sequence[int]],
    count: int,
) -> Rates:
    """Return the measured rates of every row of the table, rows × :data:`RATES`."""
    columns = {rate: number for number, rate in enumerate(RATES)}
    pairs = [
        (row, at * len(columns) + columns[case.rate], case.wrong) for row, case in judged for at in places[case.finding]
    ]
    rows, cells, wrong = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in range(3))
    place = Places(
        shape=(count, len(columns)),
        dataset=np.zeros(len(rows), np.int64),
        cell=cells,
        cluster=cases.cluster[rows],
        resamplers=(cases.resampler,),
    )
    weight = cases.weight[rows]
    return rates(place, weight * wrong, weight, independent=True)


def _test_of(card: Card, finding: str, rate: str, own: Sequence[FindingCase]) -> dict[str, float]:
    """Return the test behind a rate, of the finding or of a wrong side, as arguments of :func:`corrected_share`.

    Without a reliable row of the card there is none.

    For a wrong side the positive cases are those on the other side than ordered, so that sensitivity and specificity
    are the shares of right readings of either side, mixed as the prompts order sides.
    """
    row = card.row("side" if rate == WRONG_SIDE else "class", finding)
    if row is None or not row.reliable:
        return {}
    present, absent = float(row.present), float(row.absent)
    sensitivity, specificity = float(row.sensitivity or 0), float(row.specificity or 0)
    if rate != WRONG_SIDE:
        return {
            "sensitivity": sensitivity,
            "positives": present,
            "specificity": specificity,
            "negatives": absent,
        }
    left = sum(case.side == LEFT for case in own) / max(len(own), 1)
    return {
        "sensitivity": left * specificity + (1 - left) * sensitivity,
        "positives": left * absent + (1 - left) * present,
        "specificity": left * sensitivity + (1 - left) * specificity,
        "negatives": left * present + (1 - left) * absent,
    }


def _columns(
    name: str, own: Sequence[FindingCase], table: Rates, at: tuple[int, int, int], test: Mapping[str, float]
) -> dict[str, Any]:
    """Return the columns of one rate of one row."""
    rate, low, high, method = (values[at] for values in (table.rate, table.low, table.high, table.method))
    corrected = _UNKNOWN
    if test and own:
        independent = {WILSON: len(own), WILSON_CLUSTERS: table.clusters[at]}
        count = independent.get(method, effective_cases(rate, low, high, len(own)))
        corrected = corrected_share(1 - rate if name == MISSED else rate, count, **test)
        if name == MISSED:
            corrected = (1 - corrected[0], 1 - corrected[2], 1 - corrected[1])
    values = {"rate": rate, "low": low, "high": high}
    values |= dict(zip(("corrected", "corrected_low", "corrected_high"), corrected, strict=True))
    return {
        RATES[name]: len(own),
        name: sum(case.wrong for case in own),
        **{f"{name}_{column}": float(decimals(value)) for column, value in values.items()},
        f"{name}_method": str(method) if own else "",
    }


def _of_card(card: Card | None, finding: str) -> dict[str, float]:
    """Return the card's sensitivity and specificity of a finding and its share of right sides; none without a row."""
    row, side = (None if card is None else card.row(kind, finding) for kind in ("class", "side"))
    values = {
        "sensitivity": None if row is None else row.sensitivity,
        "specificity": None if row is None else row.specificity,
        "side_right": _right_sides(side),
    }
    return {name: math.nan if value is None else round(value, 6) for name, value in values.items()}


def _right_sides(row: CardRow | None) -> float | None:
    count = 0 if row is None else row.present + row.absent
    return None if row is None or not count else (row.seen + row.absent - row.spurious) / count
