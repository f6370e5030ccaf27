"""Check that a network's gradients lead an attack to where its answers change.

The share that all attacks along plain gradients leave right within ε is compared with the share left right at the same
ε by an attack that does not follow them: noise, a search on scores, an image crafted on another system, or what
``strongest`` finds by other means. If the difference is significant (paired, 95 %), the gradients are misleading and
the rates of white-box attacks are not evidence of robustness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from medtest.results.attacks.checking.found import MISLEADING, MISLEADS, CheckFinding
from medtest.results.attacks.pairs import Difference, PairedCases
from medtest.results.attacks.settings import BLACK, GENERATOR, NOISE, STRONGEST, TRANSFER, WHITE, Setting
from medtest.results.records.records_io import Records

PLAIN = "auto_pgd"
"""Name in records of the part of ``strongest`` that follows plain gradients."""
_BY_OTHER_MEANS = 0.05
"""Share of images that ``strongest`` must significantly exceed by other means.

A search on scores finds a few images that a sound gradient attack just missed.
"""


def misleading(records: Records, settings: Sequence[Setting], pairs: PairedCases, dataset: int) -> CheckFinding:
    """Return the check of one data set.

    Args:
        records: Records of one system, with follow-ups.
        settings: All settings.
        pairs: Pairs of cases with the same source.
        dataset: Index of the data set.
    """
    compared = list(_compared(records, settings, pairs, dataset))
    if not compared:
        why = "no gradient attack and noise, search, transfer or strongest at the same ε to compare"
        return CheckFinding.unchecked(MISLEADING, why)
    rival, difference, bound = max(compared, key=lambda pair: float(np.nan_to_num(pair[1].low, nan=-np.inf)) - pair[2])
    words = (
        f"{pairs.graded.measure} {difference.first:.3f} under all gradient attacks within ε = "
        f"{rival.epsilon:g}/255, {difference.second:.3f} under {rival.words}: {difference.words}, "
        f"{difference.cases:,} cases"
    )
    figures = {**difference.figures, "bound": bound}
    if np.isnan(difference.low):
        return CheckFinding.unchecked(MISLEADING, f"{words}; a single seed gives no interval", figures)
    if difference.low <= bound:
        return CheckFinding.of(MISLEADING, True, words, figures)
    has_strongest = any(setting.part == STRONGEST and setting.crafted for setting in settings)
    advice = MISLEADS if has_strongest else f"{MISLEADS.partition(':')[0]}: add strongest to the suite and read its row"
    return CheckFinding.of(MISLEADING, False, f"{advice}. {words}", figures)


def _compared(
    records: Records, settings: Sequence[Setting], pairs: PairedCases, dataset: int
) -> Iterator[tuple[Setting, Difference, float]]:
    """Yield each rival of the gradient attacks with the difference and the bound that it must exceed."""
    columns = records.followups.columns
    by = records.texts("found_by") if "found_by" in columns else np.full(len(records.followups), "", object)
    plain = _plain(settings, by)
    for rival in settings:
        attributed = rival.part == STRONGEST and rival.role == WHITE and bool((by[rival.rows] != "").any())
        if rival.targeted or not (
            attributed or rival.role in (NOISE, BLACK, TRANSFER, GENERATOR) or _unknown(rival, by)
        ):
            continue
        within = [rows for white, rows in plain if white.epsilon <= rival.epsilon and white.norm == rival.norm]
        if not any(white.part != STRONGEST and white.epsilon <= rival.epsilon for white, _ in plain) or not within:
            continue
        gradients = pairs.least_right(within, dataset)
        if attributed:
            otherwise = np.isin(by[rival.rows], [*_names(settings), ""], invert=True)
            joined = pairs.least_right([gradients, rival.rows[otherwise]], dataset)
            difference, bound = pairs.of_rows(gradients, joined), _BY_OTHER_MEANS
        else:
            difference, bound = pairs.of_rows(gradients, rival.inside(pairs.place, dataset)), 0.0
        if difference is not None:
            yield rival, difference, bound


def _plain(settings: Sequence[Setting], by: NDArray[np.object_]) -> list[tuple[Setting, NDArray[np.int64]]]:
    """Return the plain gradient attacks with their follow-ups; of ``strongest``, only those found that way."""
    names = _names(settings)
    plain = []
    for setting in settings:
        if setting.role != WHITE or setting.targeted:
            continue
        rows = setting.rows
        if setting.part == STRONGEST:
            rows = rows[np.isin(by[rows], names)]
        if rows.size:
            plain.append((setting, rows))
    return plain


def _names(settings: Sequence[Setting]) -> list[str]:
    """Return the names of plain gradient attacks in records."""
    white = {setting.relation for setting in settings if setting.role == WHITE and setting.part != STRONGEST}
    return [PLAIN, *sorted(white)]


def _unknown(setting: Setting, by: NDArray[np.object_]) -> bool:
    """Return True for ``strongest`` if its records do not name the attack that succeeded."""
    return setting.part == STRONGEST and setting.role == WHITE and not bool((by[setting.rows] != "").any())
