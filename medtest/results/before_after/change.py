"""Effect of further training: a network before and after, compared on the same follow-up cases.

The table has the form of the MedTest slides (RQ2): mean Dice and IoU on the originals, on each relation, and the
average of both (the slides' Average rows include the original). Row ``relations`` is the mean over the relations
without the originals. Intervals are 95 % percentile bootstraps of the *difference* that resample seeds (clusters if
there are patients or videos) within each data set, so that before and after share their images (Davison and Hinkley,
Bootstrap Methods, 1997, section 3.8; the pairing is that of Koehn, EMNLP 2004).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import UNCHANGED
from medtest.core.deferred import pd
from medtest.core.errors import OutputProblem
from medtest.core.records import KEY_COLUMNS
from medtest.core.tasks.base import Task
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL, Floats, Places
from medtest.results.cube.intervals import percentile_interval
from medtest.results.cube.resampling import clusters_within
from medtest.results.published import retraining
from medtest.results.published.retraining import AVERAGE, ORIGINAL
from medtest.results.records.alike import check_alike
from medtest.results.records.records_io import Records

RELATIONS = "relations"
"""Row with the mean over the relations, without the originals."""
SCORES = ("dice", "iou")
COLUMNS = columns_in(__file__, "before_after")
"""Columns of the long table, shared with :mod:`medtest.tasks.classify.tables.before_after`.

Scores and differences are in [-1, 1]. ``published_before`` and ``published_after`` are filled if the slides have this
data set; ``published_mean_difference`` is the mean over the data sets of the slides.
"""

_HASH, _CRAFTED = "followup_sha256", "crafted_on"


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPlaces(Places):
    """Axes of the cases that both systems answered, with one cell for each row.

    Attributes:
        datasets: Data sets in order.
        rows: ``original`` and the relations in order.
    """

    datasets: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def pools(self) -> tuple[tuple[str, list[int]], ...]:
        """Data sets by name with their indices, followed by ``all`` if there are several."""
        pools = [(name, [number]) for number, name in enumerate(self.datasets)]
        return (*pools, (ALL, list(range(len(pools))))) if len(pools) > 1 else tuple(pools)


@dataclass(frozen=True, kw_only=True, eq=False)
class Paired(SharedPlaces):
    """Cases that were scored both before and after.

    Attributes:
        before: Score before by name.
        after: Score after by name.
        unpaired: Number of cases left out because one side has no score (ERROR, or SKIP on one side only) or no record.
    """

    before: dict[str, Floats]
    after: dict[str, Floats]
    unpaired: int


def pair(before: Records, after: Records, *, order: Sequence[str] = (), scores: Sequence[str] = SCORES) -> Paired:
    """Pair the cases of two systems.

    Args:
        before: Records of the network before training.
        after: Records of the network after training.
        order: Relation ids in the desired order.
        scores: Score columns.

    Raises:
        OutputProblem: The systems share no case, or an image differs between them.
    """
    for side in (before, after):
        absent = [score for score in scores if score not in side.followups.columns]
        if absent:
            raise OutputProblem(f"the records hold no {' and no '.join(absent)}: the seeds have no expected masks")
    cases, single = joined(before, after, scores)
    values = {
        when: {score: cases[f"{score}_{when}"].to_numpy(dtype=np.float64, na_value=np.nan) for score in scores}
        for when in ("before", "after")
    }
    scored = ~np.isnan(np.stack([column for side in values.values() for column in side.values()])).any(axis=0)
    return Paired(
        **vars(placed(cases.loc[scored], order)),
        before={score: values["before"][score][scored] for score in scores},
        after={score: values["after"][score][scored] for score in scores},
        unpaired=unanswered(cases.loc[~scored]) + single,
    )


def joined(before: Records, after: Records, columns: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """Return the common cases, with columns as ``<name>_before`` and ``<name>_after``, and the number of others.

    Args:
        before: Records of the network before training.
        after: Records of the network after training.
        columns: Columns to include; those missing from the records are empty.

    Raises:
        OutputProblem: The systems share no case, or an image differs between them.
    """
    keys = list(KEY_COLUMNS)
    check_alike((before, after))
    sides = [_cases(side, columns) for side in (before, after)]
    cases = sides[0].merge(sides[1], on=keys, how="inner", suffixes=("_before", "_after"), sort=False)
    if cases.empty:
        raise OutputProblem("before and after have no case in common: run both under the same suite and seeds")
    equal = (cases[f"{_HASH}_before"] == cases[f"{_HASH}_after"]).to_numpy(dtype=bool)
    equal = equal | _made_on_each(cases)
    if not equal.all():
        first = cases.loc[~equal].iloc[0]
        raise OutputProblem(
            f"before and after used different images: {int((~equal).sum())} cases differ, the first is "
            f"{first['dataset']}/{first['seed_id']}/{first['relation']}_s{first['severity']}"
        )
    return cases, len(sides[0]) + len(sides[1]) - 2 * len(cases)


def _made_on_each(cases: pd.DataFrame) -> NDArray[np.bool_]:
    """Return a mask of the cases crafted separately on each system, whose images may therefore differ."""
    sides = [cases[f"{_CRAFTED}_{when}"].astype(object) for when in ("before", "after")]
    crafted = sides[0].notna() & sides[1].notna()
    return np.asarray(crafted & (sides[0] != sides[1]), dtype=bool)


def unanswered(unjudged: pd.DataFrame) -> int:
    """Return the number of unpaired cases, except those skipped on both sides."""
    neither = (unjudged["verdict_before"] == "SKIP") & (unjudged["verdict_after"] == "SKIP")
    return len(unjudged) - int(neither.sum())


def placed(cases: pd.DataFrame, order: Sequence[str]) -> SharedPlaces:
    """Return the axes of paired cases.

    Args:
        cases: Rows of :func:`joined`.
        order: Relation ids in the desired order.
    """
    datasets, dataset = _numbered(cases["dataset"])
    names = list(dict.fromkeys(cases["relation"]))
    ordered = [name for name in order if name in names]
    rows = [ORIGINAL, *ordered, *(name for name in names if name != ORIGINAL and name not in ordered)]
    place = {name: index for index, name in enumerate(rows)}
    cluster, resamplers = clusters_within(dataset, datasets, cases["cluster_before"].to_numpy().astype(str))
    return SharedPlaces(
        shape=(len(rows),),
        datasets=datasets,
        rows=tuple(rows),
        dataset=dataset,
        cell=np.array([place[name] for name in cases["relation"]], np.int64),
        cluster=cluster,
        resamplers=resamplers,
    )


def _cases(records: Records, scores: Sequence[str]) -> pd.DataFrame:
    """Return originals and follow-ups as one frame of plain types, without ``unchanged``."""
    frame = pd.concat([records.sources.assign(relation=ORIGINAL), records.followups], ignore_index=True)
    frame = frame.loc[(frame["relation"].astype(str) != UNCHANGED).to_numpy()].copy()
    for name in ("dataset", "seed_id", "item", "relation", "cluster", "verdict", _HASH):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "").astype(str)
    return frame.reindex(columns=[*KEY_COLUMNS, "cluster", "verdict", _HASH, _CRAFTED, *scores])


def _numbered(column: pd.Series) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    names = tuple(dict.fromkeys(str(name) for name in column))
    place = {name: index for index, name in enumerate(names)}
    return names, np.array([place[str(name)] for name in column], np.int64)


def compare(
    before: Records, after: Records, *, task: Task, order: Sequence[str] = (), family: str = ""
) -> tuple[pd.DataFrame, int]:
    """Return the long table of two systems, and the number of cases that only one of them answered.

    Args:
        before: Records of the network before training.
        after: Records of the network after training.
        task: Task of both; without measures for this comparison, masks are compared.
        order: Relation ids in the desired order.
        family: Network whose published figures are included.

    Raises:
        OutputProblem: The two did not see the same images, or no answers are expected.
    """
    comparison = task.tables.before_after(before, after, order, family)
    if comparison is not None:
        return comparison
    masks = pair(before, after, order=order)
    return table_of(masks, family), masks.unpaired


def table_of(paired: Paired, family: str = "") -> pd.DataFrame:
    """Return the long table: one row for each data set (and ``all`` if there are several), row and score.

    Args:
        paired: Paired cases.
        family: Network whose published figures are included.
    """
    rows: list[dict[str, object]] = []
    for score, before in paired.before.items():
        after = paired.after[score]
        sums = paired.sums(np.ones(len(before)), before, after, after - before)
        drawn = paired.drawn([block[:, [0, 3]] for block in sums])
        for dataset, numbers in paired.pools:
            shown = _sides([sums[number] for number in numbers], [drawn[number] for number in numbers])
            rows += difference_rows(paired.rows, shown, score=score, family=family, dataset=dataset)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _sides(sums: Sequence[Floats], drawn: Sequence[Floats]) -> Sides:
    """Return a score over several data sets.

    Args:
        sums: For each data set, clusters × (cases, before, after, difference) × rows.
        drawn: For each data set, replicates × (cases, difference) × rows.
    """
    cases, before, after = np.sum([block.sum(0) for block in sums], axis=0)[:3]
    draws = np.sum(drawn, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Sides(
            before=before / cases,
            after=after / cases,
            differences=draws[:, 1] / draws[:, 0],
            cases=cases,
            clusters=sum(len(block) for block in sums),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """One score of every row, before and after.

    Attributes:
        before: float64 rows; NaN without cases.
        after: float64 rows.
        differences: float64 replicates × rows, after minus before, on resampled clusters.
        cases: Number of cases of each row.
        clusters: Number of clusters that were resampled.
    """

    before: Floats
    after: Floats
    differences: Floats
    cases: Floats
    clusters: int


def difference_rows(
    names: Sequence[str], shown: Sides, *, score: str, family: str, dataset: str
) -> Iterator[dict[str, object]]:
    """Yield the rows of one score and data set: each row, the mean of the relations, the average.

    Args:
        names: ``original``, then the relations.
        shown: The score before and after.
        score: Name of the score.
        family: Network whose published figures are included.
        dataset: The data set.
    """
    relations = list(range(1, len(names)))
    rows = [(name, [index]) for index, name in enumerate(names)]
    rows += [(RELATIONS, relations), (AVERAGE, [0, *relations])]
    for name, members in rows:
        scored = ~np.isnan(shown.before) & ~np.isnan(shown.after)
        usable = [index for index in members if shown.cases[index] > 0 and scored[index]]
        if not usable:
            continue
        low, high = percentile_interval(shown.differences[:, usable].mean(axis=1))
        published = retraining.figure(family, dataset, name, score)
        elsewhere = retraining.mean_difference(family, name, score)
        yield {
            "dataset": dataset,
            "relation": name,
            "score": score,
            "before": round(float(shown.before[usable].mean()), 6),
            "after": round(float(shown.after[usable].mean()), 6),
            "difference": round(float((shown.after[usable] - shown.before[usable]).mean()), 6),
            "ci_low": None if shown.clusters < 2 else round(float(low), 6),
            "ci_high": None if shown.clusters < 2 else round(float(high), 6),
            "seeds": shown.clusters,
            "cases": int(shown.cases[usable].sum()),
            "published_before": None if published is None else published.before,
            "published_after": None if published is None else published.after,
            "published_difference": None if published is None else published.difference,
            "published_mean_difference": None if elsewhere is None else round(elsewhere, 6),
        }


def row_of(
    table: pd.DataFrame, relation: str, *, score: str | None = None, dataset: str | None = None
) -> pd.Series | None:
    """Return one row of the long table, or None.

    Args:
        table: The long table.
        relation: Relation id, ``original``, ``relations`` or ``average``.
        score: Score; None for the table's first one (Dice, accuracy).
        dataset: Data set; None for all data sets together.
    """
    names = list(dict.fromkeys(table["dataset"]))
    pool = dataset if dataset is not None else (ALL if ALL in names else (names[0] if names else ""))
    shown = score if score is not None else headline(table)
    matches = (table["dataset"] == pool) & (table["relation"] == relation) & (table["score"] == shown)
    return None if not matches.any() else table.loc[matches].iloc[0]


def headline(table: pd.DataFrame) -> str:
    """Return the leading score of a table, or "" if it is empty."""
    return "" if table.empty else str(table["score"].iloc[0])
