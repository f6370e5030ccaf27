"""Factors of failing slices, each as a few bins: quartiles of numbers, and the values of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.results.rates.factors import FactorCases, Floats, all_factors, bins_of
from medtest.results.records.records_io import Records

_FEW = 4
"""Number of distinct values up to which numbers of the metadata are values, not quartiles."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BinnedFactor:
    """One factor with the bin of each case.

    Attributes:
        name: Name in tables.
        codes: int64 N; index of the bin, -1 for a missing value.
        words: Words of each bin: a value, or ``LOW to HIGH``.
    """

    name: str
    codes: NDArray[np.int64]
    words: tuple[str, ...]


def binned_factors(
    records: Records, cases: FactorCases, original: str, categories: Sequence[str] = ()
) -> list[BinnedFactor]:
    """Return the factors with at least two bins: relation, data set, question, the task's, metadata, numbers.

    Args:
        records: Records of one system.
        cases: The cases whose bins are needed.
        original: The score whose original value is a factor.
        categories: Further text columns (:attr:`medtest.core.tasks.roles.TaskTables.categories`).
    """
    rows = cases.rows.index.to_numpy()
    columns = {"relation": "relation", "dataset": "dataset", "item": "item", **{name: name for name in categories}}
    factors = [
        _of_texts(name, *records.codes(column), rows)
        for name, column in columns.items()
        if column in records.followups.columns
    ]
    factors += [_of_metadata(name, *records.codes(f"stratum_{name}"), rows) for name in records.strata]
    for factor in all_factors(original):
        if factor.column in cases.rows.columns:
            factors.append(_of_numbers(factor.name, cases.rows[factor.column].to_numpy(np.float64, na_value=np.nan)))
    return [factor for factor in factors if len(factor.words) > 1]


def _of_texts(name: str, codes: NDArray[np.int64], texts: Sequence[str], rows: NDArray[np.int64]) -> BinnedFactor:
    present, numbered = np.unique(codes[rows], return_inverse=True)
    words = [texts[code] for code in present.tolist()]
    numbers = numbered.ravel().astype(np.int64)
    if "" in words:
        empty = words.index("")
        numbers = np.select([numbers == empty, numbers > empty], [-1, numbers - 1], numbers)
        words.pop(empty)
    return BinnedFactor(name=name, codes=numbers, words=tuple(words))


def _of_metadata(name: str, codes: NDArray[np.int64], texts: Sequence[str], rows: NDArray[np.int64]) -> BinnedFactor:
    """Return the values of a metadata column; quartiles if they are numbers (an age) with many values."""
    by_text = np.array([np.nan if not text else _number(text) for text in texts])
    if len(texts) <= _FEW or any(text and not np.isfinite(value) for text, value in zip(texts, by_text, strict=True)):
        return _of_texts(name, codes, texts, rows)
    return _of_numbers(name, by_text[codes[rows]])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.inf


def _of_numbers(name: str, values: Floats) -> BinnedFactor:
    codes, count = bins_of(values)
    ends = [values[codes == code] for code in range(count)]
    words = tuple(_range(float(inside.min()), float(inside.max())) for inside in ends)
    return BinnedFactor(name=name, codes=codes, words=words)


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
