"""Mean scores over severities (``tables/severity.csv``) and rates by metadata columns (``tables/strata.csv``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.cases import UNCHANGED
from medtest.oracles.criteria import compared_columns
from medtest.results import columns, efr, statistics
from medtest.results.cells import Axes, axes
from medtest.results.records_io import Records
from medtest.suite.model import Criterion

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

SEVERITY_COLUMNS = columns.SEVERITY
STRATA_COLUMNS = columns.STRATA


def severity_table(
    records: Records, scores: Sequence[str], against: Sequence[str], place: Axes | None = None
) -> pd.DataFrame:
    """Return the mean of each score at each severity, with a bootstrap interval over clusters.

    Only cases count whose source was scored too, so that ``source_mean`` is the mean of the same seeds.

    Args:
        records: Records of one system.
        scores: Score columns.
        against: ``truth`` (the score itself) and ``source`` (``self_<score>``, where the source's mean is 1, or
            what :data:`medtest.oracles.criteria.ORIGINALS` names).
        place: What :func:`medtest.results.cells.axes` gave for these records; None makes it.
    """
    import pandas as pd

    if records.followups.empty:
        return pd.DataFrame(columns=list(SEVERITY_COLUMNS))
    found = axes(records) if place is None else place
    scale = records.floats("scale")
    rows: list[dict[str, object]] = []
    for reference in against:
        for score in scores:
            name, origin = compared_columns(score, reference)
            after = records.floats(name)
            before = np.ones_like(after) if origin is None else records.floats(origin)
            known = ~np.isnan(after) & ~np.isnan(before)
            if known.any():
                sums = _Sums(found, known, (after, before, scale))
                rows += [{"score": score, "against": reference, **row} for row in sums.rows()]
    return pd.DataFrame(rows, columns=list(SEVERITY_COLUMNS))


class _Sums:
    """Sums over the cells of every data set, and over resampled clusters."""

    def __init__(self, place: Axes, known: Bools, values: tuple[Floats, Floats, Floats]) -> None:
        self._place = place
        self._known = known
        self._values = values

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield a row for each cell of each data set, and of all together."""
        totals: list[Floats] = []
        draws: list[Floats] = []
        clusters: list[int] = []
        for number, dataset in enumerate(self._place.datasets):
            total, drawn = self._of(number)
            totals.append(total)
            draws.append(drawn)
            clusters.append(self._place.clusters[number])
            yield from self._cells(dataset, total, drawn, clusters[-1])
        yield from self._cells(efr.ALL, sum(totals[1:], totals[0]), sum(draws[1:], draws[0]), sum(clusters))

    def _of(self, number: int) -> tuple[Floats, Floats]:
        """Return 4 × cells (cases, after, before, scale) and replicates × 2 × cells (cases, after)."""
        place = self._place
        here = self._known & (place.dataset == number)
        cells = place.shape[0] * place.shape[1]
        flat = place.cluster[here] * cells + place.cell[here]
        size = place.clusters[number] * cells
        after = self._values[0][here]
        per_cluster = np.stack(
            [np.bincount(flat, minlength=size), np.bincount(flat, weights=after, minlength=size)]
        ).reshape(2, place.clusters[number], cells)
        others = [np.bincount(place.cell[here], weights=value[here], minlength=cells) for value in self._values[1:]]
        total = np.stack([*per_cluster.sum(1), *others])
        rows = np.concatenate(list(per_cluster), axis=1).astype(np.float32)
        return total, place.resamplers[number].sums(rows).astype(np.float64).reshape(-1, 2, cells)

    def _cells(self, dataset: str, total: Floats, drawn: Floats, clusters: int) -> Iterator[dict[str, object]]:
        place = self._place
        with np.errstate(invalid="ignore", divide="ignore"):
            means, sources, scales = total[1:] / total[0]
            low, high = statistics.percentile_interval(drawn[:, 1] / drawn[:, 0])
        for cell in np.flatnonzero(total[0] > 0):
            relation, severity = divmod(int(cell), len(place.severities))
            single = clusters < 2
            yield {
                "dataset": dataset,
                "relation": place.relations[relation],
                "group": place.groups[relation],
                "severity": place.severities[severity],
                "scale": round(float(scales[cell]), 6),
                "cases": int(total[0][cell]),
                "mean": round(float(means[cell]), 6),
                "ci_low": None if single else round(float(low[cell]), 6),
                "ci_high": None if single else round(float(high[cell]), 6),
                "source_mean": round(float(sources[cell]), 6),
            }


def strata_table(records: Records, primary: Criterion, relation_order: Sequence[str] = ()) -> pd.DataFrame:
    """Return rates under one criterion for every value of every metadata column, data sets pooled.

    Args:
        records: Records of one system, with ``stratum_`` columns.
        primary: The criterion.
        relation_order: Ids in the suite's order.
    """
    import pandas as pd

    wanted = efr.Criteria(scores=(primary.score,), thresholds=(primary.threshold,), against=(primary.against,))
    parts: list[pd.DataFrame] = []
    for stratum in records.strata:
        column = records.texts(f"stratum_{stratum}")
        for value in sorted({str(text) for text in column}):
            chosen = Records(
                followups=records.followups.loc[column == value].reset_index(drop=True), sources=records.sources
            )
            if chosen.followups.empty:
                continue
            table = efr.efr_table(chosen, wanted, axes(chosen, relation_order))
            kept = table.loc[((table["severity"] == efr.ALL) & (table["relation"] != UNCHANGED)).to_numpy()]
            parts.append(kept.assign(stratum=stratum, value=value or "(empty)"))
    if not parts:
        return pd.DataFrame(columns=list(STRATA_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(STRATA_COLUMNS)]
