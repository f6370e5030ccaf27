"""Rates in the layout of the report's tables 2 to 9: rows of relations, columns of data sets and scores.

There is one table for each threshold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from medtest.core.deferred import pd
from medtest.results.rates import efr
from medtest.seeds.datasets.facts import plain

TRAINED_ON_MARK = " (trained on)"


def marked(dataset: str, trained_on: Collection[str]) -> str:
    """Return the data set's name, marked if the system was trained on it (ignoring case, ``-`` and ``_``)."""
    training = {plain(name) for name in trained_on}
    return dataset + TRAINED_ON_MARK if plain(dataset) in training else dataset


def pivot_table(
    table: pd.DataFrame,
    *,
    threshold: float | None,
    against: str,
    scores: Sequence[str],
    trained_on: Collection[str] = (),
) -> pd.DataFrame:
    """Return one table in the layout of the report, percentages over all severities.

    Args:
        table: Table from :func:`medtest.results.rates.efr.efr_table`.
        threshold: t of equation 6; None for rules without one.
        against: ``truth`` or ``source``.
        scores: Score columns, in order.
        trained_on: Data sets on which the system was trained.

    Returns:
        Columns ``relation``, ``group``, then ``<data set> <score>`` in the order of the records, pooled last.
    """
    selected = table.loc[
        (
            (table["threshold"].isna() if threshold is None else table["threshold"] == threshold)
            & (table["against"] == against)
            & (table["severity"] == efr.ALL)
            & table["score"].isin(list(scores))
        ).to_numpy()
    ]
    datasets = [str(name) for name in pd.unique(table["dataset"])]
    relations = [str(name) for name in pd.unique(table["relation"])]
    order = [name for name in relations if not name.startswith(efr.OVERALL)] + [
        name for name in (efr.OVERALL, efr.OVERALL_CELLS) if name in relations
    ]
    rates = {
        (str(row.dataset), str(row.relation), str(row.score)): row.efr_percent
        for row in selected.itertuples(index=False)
    }
    group_of = {str(row.relation): str(row.group) for row in selected.itertuples(index=False)}
    rows = []
    for relation in order:
        if relation not in group_of:
            continue
        row: dict[str, object] = {"relation": relation, "group": group_of[relation]}
        for dataset in datasets:
            for score in scores:
                row[f"{marked(dataset, trained_on)} {score}"] = rates.get((dataset, relation, score))
        rows.append(row)
    return pd.DataFrame(rows)


def file_name(threshold: float | None, against: str) -> str:
    """Return the pivot's file name, e.g. ``pivot_truth_t0.25.csv``, or ``pivot_source.csv`` without a threshold."""
    return f"pivot_{against}.csv" if threshold is None else f"pivot_{against}_t{threshold:g}.csv"
