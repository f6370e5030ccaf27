"""Failing cases and images: violations with their addresses, one row for each image, and warnings on data sets.

One implementation serves masks, labels, answers and series: the primary criterion defines the loss of a case and
whether it is a violation. Addresses are as in records, with hashed ids if the suite hashes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.core.records import ADDRESS, KEY_COLUMNS, addresses
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes
from medtest.results.cube.rates import decimals
from medtest.results.records.records_io import Floats, Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

COUNTED = ("missed_lesions", "false_regions")
"""Scores that count errors; for all others, higher is better."""
CASE_COLUMNS = columns_in(__file__, "violations")
VIOLATIONS = "violations_"
"""Prefix of the column of an image's violations under a relation."""
LOW_SOURCE = 0.5
"""Mean score of source cases below which a data set gets a warning, since there is little left to lose."""


_NOTHING = (
    " Check the dtype of the answers: uint8 means probability × 255, so 0 and 1 are both below the threshold; masks "
    "must be bool."
)


def case_losses(records: Records, criterion: Criterion) -> Floats:
    """Return the relative loss of each follow-up's score under a criterion, in (-inf, 1]; NaN if unknown."""
    return _losses(records, criteria.components(criterion.score)[0], criterion.against)[2]


VIOLATION, NO_VIOLATION, ERROR, NOT_JUDGED = "violation", "no violation", "error", "not judged"


class CaseLosses:
    """Follow-ups of one system's records under one criterion.

    Args:
        records: Records of one system.
        primary: The criterion; a rule over several scores ranks by its first one, and labels that changed (or did not)
            rank by the decrease of their probability.

    Attributes:
        before: Score on the source (1 if answers are compared with the source's), float64 N, NaN if unknown.
        after: Score on the follow-up.
        loss: Relative loss in (-inf, 1].
    """

    def __init__(self, records: Records, primary: Criterion) -> None:
        self.records, self.primary = records, primary
        state = status(records, primary)
        self.case, self.violated = state.case, state.violated
        self.counted: NDArray[np.bool_] = state.case & (records.texts("relation") != UNCHANGED)
        self.before, self.after, self.loss = _losses(records, criteria.components(primary.score)[0], primary.against)

    def ranked(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the indices of selected follow-ups by decreasing loss; ties keep the records' order."""
        places = np.flatnonzero(chosen)
        keys = [-self.loss[places]]
        second = criteria.TIE_BREAKERS.get(self.primary.score)
        if second is not None:
            tied = _losses(self.records, second, self.primary.against)[2][places]
            keys.insert(0, -np.nan_to_num(tied, nan=-np.inf))
        return places[np.lexsort(keys)]

    def addresses(self, rows: NDArray[np.intp]) -> list[str]:
        """Return the addresses of follow-ups by index, built from the keys if the records have none."""
        frame = self.records.followups
        if ADDRESS in frame.columns:
            return [str(text) for text in frame[ADDRESS].iloc[rows]]
        return addresses({name: frame[name].iloc[rows].tolist() for name in KEY_COLUMNS})

    @cached_property
    def verdict(self) -> NDArray[np.object_]:
        """Text by follow-up: ``violation``, ``no violation``, ``error`` or ``not judged``."""
        verdict = np.full(len(self.case), NOT_JUDGED, dtype=object)
        verdict[(self.records.followups["verdict"] == "ERROR").to_numpy(dtype=bool)] = ERROR
        verdict[self.case] = NO_VIOLATION
        verdict[self.violated] = VIOLATION
        return verdict

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Indices of all follow-ups, those most worth looking at first.

        They are the worst of each cell (data set, relation, severity), violations, errors, other judged cases, cases
        without a verdict; each by decreasing loss.
        """
        verdict = self.verdict
        kind = np.select([verdict == VIOLATION, verdict == ERROR, verdict == NO_VIOLATION], [1, 2, 3], 4)
        ranked = self.ranked(np.ones(len(verdict), dtype=np.bool_))
        (dataset, _), (relation, relations) = (self.records.codes(name) for name in ("dataset", "relation"))
        severity = self.records.followups["severity"].to_numpy(dtype=np.int64)
        cell = (dataset * max(1, len(relations)) + relation) * (1 + severity.max(initial=0)) + severity
        judged = ranked[self.case[ranked]]
        _, first = np.unique(cell[judged], return_index=True)
        kind[judged[first]] = 0
        order = ranked[np.argsort(kind[ranked], kind="stable")]
        # The worst of each cell come first, and among them violations.
        ahead = order[kind[order] == 0]
        ahead = ahead[np.argsort(verdict[ahead] != VIOLATION, kind="stable")]
        return np.concatenate([ahead, order[len(ahead) :]]).astype(np.int64)

    def shown(self, most: int = 10_000, first: Sequence[str] = ()) -> Records:
        """Return the records of the follow-ups most worth looking at, with their sources.

        Args:
            most: Largest number of follow-ups.
            first: Addresses of follow-ups that are among them.
        """
        records = self.records
        if len(records.followups) <= most:
            return records
        named = np.isin(self.addresses(self.order), first) if first else np.zeros(len(self.order), dtype=np.bool_)
        rows = np.sort(np.concatenate([self.order[named], self.order[~named]])[:most])
        followups = records.followups.iloc[rows].reset_index(drop=True)
        is_source = np.ones(len(records.sources), dtype=np.bool_)
        for name in ("dataset", "seed_id"):
            is_source &= records.sources[name].isin(followups[name].unique()).to_numpy()
        return replace(records, followups=followups, sources=records.sources.loc[is_source].reset_index(drop=True))

    def worst(self, most: int = 30) -> pd.DataFrame:
        """Return the cases that lost most, worst first, without ``unchanged``, with :data:`CASE_COLUMNS`."""
        return self._table(self.ranked(self.counted)[:most])

    def violations(self) -> pd.DataFrame:
        """Return every violation, including ``unchanged``, worst first, with :data:`CASE_COLUMNS`."""
        return self._table(self.ranked(self.case & self.violated))

    def _table(self, places: NDArray[np.intp]) -> pd.DataFrame:
        if not places.size:
            return pd.DataFrame()
        columns = (
            self.addresses(places),
            self.records.texts("relation")[places].tolist(),
            self.records.followups["severity"].to_numpy()[places].astype(int),
            self.primary.score,
            np.round(self.before[places], 6),
            np.round(self.after[places], 6),
            np.round(100 * self.loss[places], 4),
            self.violated[places],
        )
        return pd.DataFrame(dict(zip(CASE_COLUMNS, columns, strict=True)))

    def images(self, place: Axes | None = None) -> pd.DataFrame:
        """Return one row for each source image, worst first: by violations among its cases, then by the largest loss.

        Args:
            place: Axes of the records; relations follow its order.

        Returns:
            ``dataset``, ``seed_id``, ``source_score`` (mean over its questions), ``cases``, ``violations`` and
            ``violation_percent`` without ``unchanged``, ``worst_loss_percent`` and its ``worst_address``, then
            ``violations_<relation>`` for each relation, empty if the image has no case of it.
        """
        place = axes(self.records) if place is None else place
        (dataset, datasets), (seed, seeds) = (self.records.codes(name) for name in ("dataset", "seed_id"))
        codes, unique = pd.factorize(dataset * max(1, len(seeds)) + seed)
        if not len(unique):
            return pd.DataFrame()
        names = [(datasets[code // len(seeds)], seeds[code % len(seeds)]) for code in unique.tolist()]
        scores = self._source_scores()
        failed = self.violated & self.counted
        cases = np.bincount(codes[self.counted], minlength=len(unique))
        violations = np.bincount(codes[failed], minlength=len(unique))
        cell = np.zeros((2, len(unique), len(place.relations)), np.int64)
        np.add.at(cell[0], (codes[self.case], place.relation[self.case]), 1)
        np.add.at(cell[1], (codes[self.violated], place.relation[self.violated]), 1)
        ranked = self.ranked(self.counted)
        failing, first = np.unique(codes[ranked], return_index=True)
        worst = ranked[first]
        largest = np.full(len(unique), -np.inf)
        largest[failing] = self.loss[worst]
        address = np.full(len(unique), "", dtype=object)
        address[failing] = self.addresses(worst)
        largest_percent = np.full(len(unique), np.nan)
        largest_percent[failing] = decimals(100 * self.loss[worst], 4)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(cases > 0, 100.0 * violations / cases, np.nan)
        order = np.lexsort([-np.nan_to_num(largest, nan=-np.inf), -np.nan_to_num(share, nan=-1.0)])
        columns: dict[str, Any] = {
            "dataset": np.array([name for name, _ in names], dtype=object),
            "seed_id": np.array([name for _, name in names], dtype=object),
            "source_score": np.array([scores.get(name, np.nan) for name in names]),
            "cases": cases,
            "violations": violations,
            "violation_percent": decimals(share, 4),
            "worst_loss_percent": largest_percent,
            "worst_address": address,
        }
        for number, name in enumerate(place.relations):
            present = cell[0, :, number] > 0
            violations_here = cell[1, :, number]
            columns[f"{VIOLATIONS}{name}"] = (
                violations_here if present.all() else np.where(present, violations_here, np.nan)
            )
        return pd.DataFrame({name: column[order] for name, column in columns.items()})

    def source_warnings(self) -> tuple[str, ...]:
        """Return a line for each data set whose source cases have a mean score below 0.5.

        The criterion's first score is used, against the truth; scores that count errors or do not depend on the
        source's, and data without truth, have no warning.
        """
        score, frame = criteria.components(self.primary.score)[0], self.records.sources
        if score in COUNTED or score in criteria.ALONE or score not in frame.columns or frame.empty:
            return ()
        judged = (self.records.texts(name)[self.counted] for name in ("dataset", "seed_id"))
        judged_images = set(zip(*judged, strict=True))
        sources = frame.assign(dataset=frame["dataset"].astype(str), seed_id=frame["seed_id"].astype(str))
        lines = []
        for name, rows in sources.groupby("dataset", sort=False):
            values = rows[score].to_numpy(np.float64)
            mean = np.nan if np.isnan(values).all() else float(np.nanmean(values))
            if mean < LOW_SOURCE:
                images = set(rows["seed_id"])
                judged_count = sum((name, image) in judged_images for image in images)
                rests = f"these figures rest on {judged_count:,} of {len(images):,} images"
                if judged_count == len(images):
                    rests = "all were scored, but the baseline is so low that failures may be understated"
                hint = _NOTHING if mean == 0 and score in ("dice", "iou") else ""
                lines.append(f"{name}: the mean {score} of unchanged images is {mean:.2f}; {rests}.{hint}")
        return tuple(lines)

    def _source_scores(self) -> dict[tuple[str, str], float]:
        """Return each image's mean score on the source case, over its questions; empty without such a score."""
        score, frame = criteria.components(self.primary.score)[0], self.records.sources
        if score not in frame.columns:
            return {}
        names = (frame[name].astype(str) for name in ("dataset", "seed_id"))
        sums: dict[tuple[str, str], list[float]] = {}
        for dataset, seed, value in zip(*names, frame[score].to_numpy(np.float64).tolist(), strict=True):
            if not np.isnan(value):
                sums.setdefault((dataset, seed), []).append(value)
        return {key: round(float(np.mean(values)), 6) for key, values in sums.items()}


def _losses(records: Records, score: str, against: str) -> tuple[Floats, Floats, Floats]:
    """Return a score before and after, and its relative decrease."""
    before, after = records.compared(score, against)
    with np.errstate(invalid="ignore", divide="ignore"):
        return before, after, (before - after) / before
