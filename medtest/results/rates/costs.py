"""Cost of answers from API systems: tokens, dollars, seconds, calls; for every task that asks questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.results.cube.axes import ALL

MEASURES = ("prompt_tokens", "completion_tokens", "cost_usd", "seconds", "attempts")
_METRICS = ("cost_usd", "prompt_tokens", "completion_tokens", "seconds_median", "seconds_p95", "attempts")


def cost_rows(
    frames: Sequence[pd.DataFrame],
    by: Sequence[str],
    columns: Sequence[str],
    answered: Callable[[pd.DataFrame], pd.DataFrame],
) -> pd.DataFrame:
    """Return sums over answers and over calls that ended in an ERROR, in total and by the values of some columns.

    Args:
        frames: Records.
        by: Columns to group by; a row names the column as ``by`` and its value as ``name``.
        columns: Columns of the table, in order.
        answered: Returns the records with an answer.
    """
    names = [*by, *MEASURES]
    if not all(name in frame.columns for frame in frames for name in names):
        return pd.DataFrame(columns=list(columns))
    has_answer = [frame.index.isin(answered(frame).index) for frame in frames]
    paid = [mask | frame["cost_usd"].notna().to_numpy() for mask, frame in zip(has_answer, frames, strict=True)]
    cases = pd.concat(
        [frame.loc[rows, names].astype(dict.fromkeys(by, object)) for rows, frame in zip(paid, frames, strict=True)]
    )
    own = np.concatenate([mask[rows] for mask, rows in zip(has_answer, paid, strict=True)])
    numbers = {name: cases[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in MEASURES}
    rows: list[dict[str, object]] = [{"by": ALL, "name": ALL, **_costs(numbers, own)}]
    for column in by:
        codes, unique = pd.factorize(cases[column].to_numpy(dtype=object))
        for code, name in enumerate(unique):
            matches = np.flatnonzero(codes == code)
            of_value = {key: value[matches] for key, value in numbers.items()}
            rows.append({"by": column, "name": name, **_costs(of_value, own[matches])})
    return pd.DataFrame(rows, columns=list(columns))


def cost_metrics(total: Mapping[Any, Any]) -> dict[str, float]:
    """Return the known costs of a row of :func:`cost_rows` as metrics for MLflow."""
    return {f"cost/{name}": float(total[name]) for name in _METRICS if name in total and total[name] == total[name]}


def _costs(numbers: Mapping[str, NDArray[np.float64]], answered: NDArray[np.bool_]) -> dict[str, object]:
    def total(name: str, digits: int = 6) -> float:
        values = numbers[name][~np.isnan(numbers[name])]
        return round(float(values.sum()), digits) if values.size else float("nan")

    seconds = numbers["seconds"][(numbers["attempts"] > 0) & answered]
    seconds = seconds[~np.isnan(seconds)]
    return {
        "answers": int(answered.sum()),
        "prompt_tokens": total("prompt_tokens"),
        "completion_tokens": total("completion_tokens"),
        "cost_usd": total("cost_usd", 8),
        "without_cost": int(np.isnan(numbers["cost_usd"][answered]).sum()),
        "seconds_median": round(float(np.median(seconds)), 4) if seconds.size else float("nan"),
        "seconds_p95": round(float(np.quantile(seconds, 0.95)), 4) if seconds.size else float("nan"),
        "attempts": total("attempts"),
    }
