"""One verdict per network: whether its gradients lead an attack where answers change.

All that attacks along plain gradients leave right within ε is set against what an attack leaves right at that ε which
follows none of them: noise, a search on scores, an image made elsewhere, or what ``strongest`` finds by other means.
A shown difference (paired, 95 %) says that gradients are misleading: the rates of white-box attacks say nothing then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from medtest.results.attacks.checking.found import FAILS, MISLEADING, MISLEADS, NOT_CHECKED, OK, Found
from medtest.results.attacks.pairs import Difference, PairedCases
from medtest.results.attacks.settings import BLACK, GENERATOR, NOISE, STRONGEST, TRANSFER, WHITE, Setting
from medtest.results.records.records_io import Records

PLAIN = "auto_pgd"
"""What records call the part of ``strongest`` that follows plain gradients."""
_BY_OTHER_MEANS = 0.05
"""Share of images that ``strongest`` must be shown to find by other means: a search on scores finds a few that a sound
attack along gradients has just missed."""


def misleading(records: Records, settings: Sequence[Setting], pairs: PairedCases, dataset: int) -> Found:
    """Return the verdict on one data set.

    Args:
        records: Records of one system, with follow-ups.
        settings: All settings.
        pairs: Pairs their cases.
        dataset: Number of the data set.
    """
    compared = list(_compared(records, settings, pairs, dataset))
    if not compared:
        why = "no attack along gradients stands beside noise, a search, transfer or strongest at the same ε"
        return Found(check=MISLEADING, verdict=NOT_CHECKED, why=why)
    rival, difference, bound = max(compared, key=lambda pair: float(np.nan_to_num(pair[1].low, nan=-np.inf)) - pair[2])
    words = (
        f"{pairs.graded.measure} {difference.first:.3f} under all attacks along gradients within ε = "
        f"{rival.epsilon:g}/255, {difference.second:.3f} under {rival.words}: {difference.words}, "
        f"{difference.cases:,} cases"
    )
    shown = {"value": difference.value, "low": difference.low, "high": difference.high, "bound": bound}
    if np.isnan(difference.low):
        return Found(check=MISLEADING, verdict=NOT_CHECKED, why=f"{words}; one seed alone has no interval", **shown)
    if difference.low <= bound:
        return Found(check=MISLEADING, verdict=OK, why=words, **shown)
    there = any(setting.part == STRONGEST and setting.crafted for setting in settings)
    advice = MISLEADS if there else f"{MISLEADS.partition(':')[0]}: add strongest to the suite and read its row"
    return Found(check=MISLEADING, verdict=FAILS, why=f"{advice}. {words}", **shown)


def _compared(
    records: Records, settings: Sequence[Setting], pairs: PairedCases, dataset: int
) -> Iterator[tuple[Setting, Difference, float]]:
    """Yield each rival of the attacks along gradients with the difference, and the bound it must be shown to exceed."""
    columns = records.followups.columns
    by = records.texts("found_by") if "found_by" in columns else np.full(len(records.followups), "", object)
    plain = _plain(settings, by)
    for rival in settings:
        known = rival.part == STRONGEST and rival.role == WHITE and bool((by[rival.rows] != "").any())
        if rival.targeted or not (known or rival.role in (NOISE, BLACK, TRANSFER, GENERATOR) or _unknown(rival, by)):
            continue
        within = [rows for white, rows in plain if white.epsilon <= rival.epsilon and white.norm == rival.norm]
        if not any(white.part != STRONGEST and white.epsilon <= rival.epsilon for white, _ in plain) or not within:
            continue
        gradients = pairs.least_right(within, dataset)
        if known:
            other = np.isin(by[rival.rows], [*_names(settings), ""], invert=True)
            joined = pairs.least_right([gradients, rival.rows[other]], dataset)
            difference, bound = pairs.of_rows(gradients, joined), _BY_OTHER_MEANS
        else:
            difference, bound = pairs.of_rows(gradients, rival.inside(pairs.place, dataset)), 0.0
        if difference is not None:
            yield rival, difference, bound


def _plain(settings: Sequence[Setting], by: NDArray[np.object_]) -> list[tuple[Setting, NDArray[np.int64]]]:
    """Return the attacks along plain gradients with their follow-ups; of ``strongest`` those that it found so."""
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
    """Return what records call attacks along plain gradients."""
    white = {setting.relation for setting in settings if setting.role == WHITE and setting.part != STRONGEST}
    return [PLAIN, *sorted(white)]


def _unknown(setting: Setting, by: NDArray[np.object_]) -> bool:
    """Return True for ``strongest`` of which nothing says by what means it found anything."""
    return setting.part == STRONGEST and setting.role == WHITE and not bool((by[setting.rows] != "").any())
