"""Factors of failing cases (MedTest report, section 4.5, RQ4): ``tables/factors.csv`` and ``factors_model.csv``.

Rates under the suite's primary criterion by quartile of each factor, and one logistic model of a violation on all
factors, adjusted for relations and severity, with cluster-robust standard errors. ``unchanged`` is excluded.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from medtest.core.deferred import pd
from medtest.core.oracles import criteria
from medtest.results.columns import columns_in
from medtest.results.cube.axes import Axes, axes
from medtest.results.cube.intervals import FEW_CLUSTERS, Z95
from medtest.results.cube.rates import rates
from medtest.results.cube.resampling import group_numbers
from medtest.results.records.records_io import Records
from medtest.results.records.status import status
from medtest.suite.model import Criterion

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

COLUMNS = columns_in(__file__, "factors")
MODEL_COLUMNS = columns_in(__file__, "factors_model")
EVENTS_PER_TERM = 5
"""Smallest number of violations (and of other cases) for each term of the model; with fewer it is not fitted."""

MANY_CASES = 200_000
"""Number of cases from which the model is fitted by Newton's method, started from a fit to a subset.

The maximum is the same as with iterated least squares (estimates and errors agree to eleven digits at a million cases),
in a fifth of the time and half of the memory.
"""
FAR = 20
"""Log odds ratio beyond any finite estimate: the outcomes are separated."""


class Factor(NamedTuple):
    """One factor.

    Attributes:
        name: Name in tables.
        column: Column of the records.
        unit: Unit of its values.
        label: Label in figures.
    """

    name: str
    column: str
    unit: str
    label: str


_MEASURED = (
    ("polyp_area", "fraction of the field", "polyp size"),
    ("polyp_count", "lesions", "number of polyps"),
    ("polyp_distance", "field radii", "distance from the centre"),
    ("brightness", "grey levels", "image brightness"),
    ("contrast", "grey levels", "image contrast"),
    ("sharpness", "squared grey levels", "sharpness (low: blurred)"),
    ("salient_area", "fraction of the field", "salient area"),
    ("lesion_area", "fraction of the field", "lesion size"),
    ("visible_area", "fraction of the image", "visible area"),
    ("lesion_distance", "pixels", "lesion-object distance"),
    ("object_area", "fraction of the field", "object size"),
)


def all_factors(score: str) -> tuple[Factor, ...]:
    """Return every factor; ``score`` is the one whose original value is a factor."""
    return (
        *(Factor(name, f"factor_{name}", unit, label) for name, unit, label in _MEASURED),
        Factor("visibility", "visibility", "colour steps", "visibility of the lesion"),
        Factor("source_confidence", "source_confidence", "probability", "confidence on the source"),
        Factor("original_score", f"source_{score}", "score", _original_words(score)),
    )


def bins_of(values: Floats) -> tuple[NDArray[np.int64], int]:
    """Return each value's quartile from 0 (-1 for NaN) and the number of bins.

    Equal values share a bin, so there may be fewer than four; with up to four distinct values each is a bin.
    """
    valid = ~np.isnan(values)
    codes = np.full(values.shape, -1, np.int64)
    distinct = np.unique(values[valid])
    if distinct.size <= 1:
        return codes, 0
    if distinct.size <= 4:
        codes[valid] = np.searchsorted(distinct, values[valid])
        return codes, int(distinct.size)
    edges = np.unique(np.quantile(values[valid], (0.25, 0.5, 0.75)))
    quartiles = np.searchsorted(edges, values[valid], side="left")
    _, numbered = np.unique(quartiles, return_inverse=True)
    codes[valid] = numbered.ravel()
    return codes, int(numbered.max()) + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class FactorCases:
    """Cases in the denominator of the primary criterion, without ``unchanged`` and controls.

    Attributes:
        rows: Their factor columns and severity; the index is their position among the follow-ups.
        violated: bool N; violations.
        place: Their axes.
        criterion: The criterion's columns in tables.
    """

    rows: pd.DataFrame
    violated: Bools
    place: Axes
    criterion: dict[str, object]

    @property
    def cluster(self) -> NDArray[np.int64]:
        """Cluster of each case, unique across data sets."""
        offsets = np.concatenate([[0], np.cumsum(self.place.clusters)])[:-1]
        return np.asarray(self.place.cluster + offsets[self.place.dataset], dtype=np.int64)


def counted_cases(records: Records, primary: Criterion, supplied: Axes | None) -> FactorCases:
    """Return the cases whose factors are compared; ``supplied`` are the axes of the follow-ups, if they exist."""
    place = axes(records) if supplied is None else supplied
    state = status(records, primary)
    selected = state.case & place.pooled[place.relation]
    needed = ["severity", *(factor.column for factor in all_factors(original_score(primary)))]
    rows = records.followups[[name for name in needed if name in records.followups.columns]].loc[selected]
    return FactorCases(
        rows=rows,
        violated=state.violated[selected],
        place=place.take(selected),
        criterion={
            "score": primary.score,
            "threshold": None if primary.score in criteria.NO_THRESHOLD else primary.threshold,
            "against": primary.against,
        },
    )


def _original_words(score: str) -> str:
    return "right on the source" if score == "agreement" else f"original {score}"


def original_score(primary: Criterion) -> str:
    """Return the score whose original value is a factor; for a rule its first score."""
    return criteria.components(primary.score)[0]


def factor_table(records: Records, primary: Criterion, place: Axes | None = None) -> pd.DataFrame:
    """Return rates by quartile of each factor, with :data:`COLUMNS`; factors without two values are left out."""
    if records.followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    cases = counted_cases(records, primary, place)
    rows: list[dict[str, object]] = []
    for factor in all_factors(original_score(primary)):
        if factor.column not in cases.rows.columns:
            continue
        values = cases.rows[factor.column].to_numpy(dtype=np.float64, na_value=np.nan)
        codes, count = bins_of(values)
        bin_rates = _rates(cases, codes, count)
        for code in range(count):
            inside = values[codes == code]
            ends = {"from": float(f"{inside.min():.6g}"), "to": float(f"{inside.max():.6g}")}
            head = {"factor": factor.name, "unit": factor.unit, "quartile": code + 1}
            rows.append({**head, **ends, **cases.criterion, **bin_rates[code]})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rates(cases: FactorCases, codes: NDArray[np.int64], bins: int) -> list[dict[str, object]]:
    """Return counts, rate and interval of each bin, data sets together, as in the EFR table."""
    if not bins:
        return []
    inside = codes >= 0
    binned = cases.place.take(inside).with_cells(codes[inside], (bins, 1))
    efr = rates(binned, cases.violated[inside], np.ones(len(binned.cell)), independent=True)
    return [efr.row((-1, code, -1)) for code in range(bins)]


def factor_model(records: Records, primary: Criterion, place: Axes | None = None) -> pd.DataFrame:
    """Return a logistic model of a violation on all factors, with :data:`MODEL_COLUMNS`.

    Factors are standardised: an odds ratio is for one standard deviation. A factor missing in some cases (object size
    without an object) is 0 there, its mean; the relation terms absorb the difference. Relations with only one outcome
    are uninformative and excluded. If there is no model, a single row with a note gives the reason.
    """
    if records.followups.empty:
        return pd.DataFrame(columns=list(MODEL_COLUMNS))
    cases = _informative(counted_cases(records, primary, place))
    matrix, terms = _design(cases, original_score(primary))
    violations = int(cases.violated.sum())
    rare = min(violations, len(cases.violated) - violations)
    facts = {
        "cases": len(cases.violated),
        "violations": violations,
        "clusters": int(np.unique(cases.cluster).size),
    }
    if not terms or rare < EVENTS_PER_TERM * len(terms):
        return _no_model(
            facts, f"{rare} rarer outcomes for {len(terms)} terms, at least {EVENTS_PER_TERM} each are needed"
        )
    if facts["clusters"] < FEW_CLUSTERS:  # the variance estimate of so few clusters is far too small
        return _no_model(facts, f"{facts['clusters']} clusters, at least {FEW_CLUSTERS} are needed")
    # Without the rows, which the fit does not need, a copy is saved.
    return _fit(replace(cases, rows=cases.rows.iloc[:0]), matrix, terms, facts)


def _no_model(facts: dict[str, int], why: str) -> pd.DataFrame:
    row = {"term": "", "kind": "none", **facts, "note": f"not fitted: {why}"}
    return pd.DataFrame([row], columns=list(MODEL_COLUMNS))


def _informative(cases: FactorCases) -> FactorCases:
    """Keep the relations with cases of both outcomes."""
    codes, count = group_numbers(cases.place.relation)
    hit = np.bincount(codes, weights=cases.violated, minlength=count)
    total = np.bincount(codes, minlength=count)
    keep = ((hit > 0) & (hit < total))[codes] if len(codes) else np.zeros(0, bool)
    return FactorCases(
        rows=cases.rows.loc[keep],
        violated=cases.violated[keep],
        place=cases.place.take(keep),
        criterion=cases.criterion,
    )


def _standardised(values: Floats) -> tuple[Floats, float] | None:
    valid = ~np.isnan(values)
    if not valid.any():
        return None
    spread = float(values[valid].std())
    if spread <= 1e-12 * max(1.0, abs(float(values[valid].mean()))):
        return None
    return np.where(valid, (values - values[valid].mean()) / spread, 0.0), spread


def _design(cases: FactorCases, score: str) -> tuple[Floats, list[tuple[str, str, str]]]:
    """Return the matrix of the model, whose first column is 1, and the terms of the others; none without a factor."""
    columns: list[Floats] = []
    terms: list[tuple[str, str, str]] = []
    numbers = [(f.name, f.column, f.unit) for f in all_factors(score)] + [("severity", "severity", "level")]
    for name, column, unit in numbers:
        if column not in cases.rows.columns:
            continue
        scaled = _standardised(cases.rows[column].to_numpy(dtype=np.float64, na_value=np.nan))
        if scaled is not None:
            columns.append(scaled[0])
            terms.append((name, "factor" if name != "severity" else "adjustment", f"{scaled[1]:.4g} {unit}"))
    if not any(kind == "factor" for _, kind, _ in terms):
        return np.ones((len(cases.violated), 1)), []
    for field, codes, texts in (
        ("relation", cases.place.relation, cases.place.relations),
        ("dataset", cases.place.dataset, cases.place.datasets),
    ):
        levels, firsts = np.unique(codes, return_index=True)
        ordered = levels[np.argsort(firsts)].tolist()  # in order of first occurrence
        for number in ordered[1:]:
            columns.append((codes == number).astype(np.float64))
            terms.append((f"{field} {texts[number]}", "adjustment", f"against {texts[ordered[0]]}"))
    matrix = np.column_stack([np.ones(len(cases.violated)), *columns])
    columns_kept = _independent(matrix)
    return matrix[:, columns_kept], [terms[index - 1] for index in columns_kept[1:]]


def _independent(matrix: Floats) -> list[int]:
    """Return the indices of the linearly independent columns, earlier ones first."""
    selected: list[int] = []
    basis = np.zeros(matrix.shape, order="F")
    for index in range(matrix.shape[1]):
        column = matrix[:, index]
        spanned = basis[:, : len(selected)]
        residual = column - spanned @ (spanned.T @ column)
        size = float(np.linalg.norm(residual))
        if size > 1e-6 * float(np.linalg.norm(column)):
            basis[:, len(selected)] = residual / size
            selected.append(index)
    return selected


def _fit(cases: FactorCases, matrix: Floats, terms: list[tuple[str, str, str]], facts: dict[str, int]) -> pd.DataFrame:
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import PerfectSeparationError

    violated, family = cases.violated.astype(np.float64), sm.families.Binomial()
    model = sm.GLM(violated, matrix, family=family)
    spread_by = {"cov_type": "cluster", "cov_kwds": {"groups": cases.cluster}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            start = None
            if len(violated) >= MANY_CASES:
                step = len(violated) // (MANY_CASES // 2)
                start = sm.GLM(violated[::step], matrix[::step], family=family).fit().params
            if start is None or not np.abs(start).max() < FAR:  # a subset may be separated although all cases are not
                fitted = model.fit(**spread_by)
                converged = fitted.converged
            else:
                fitted = model.fit(method="newton", start_params=start, max_start_irls=0, disp=0, **spread_by)
                converged = fitted.mle_retvals["converged"]
        except (PerfectSeparationError, np.linalg.LinAlgError, ValueError) as error:
            return _no_model(facts, str(error))
    if not converged or not np.isfinite(fitted.bse).all() or np.abs(fitted.params[1:]).max() > FAR:
        return _no_model(facts, "the outcomes are separated by the terms, so that no finite estimate exists")
    rows = []
    for index, (name, kind, unit) in enumerate(terms, start=1):
        estimate, spread = float(fitted.params[index]), float(fitted.bse[index])
        rows.append(
            {
                "term": name,
                "kind": kind,
                "unit": unit,
                "odds_ratio": float(f"{np.exp(estimate):.6g}"),
                "ci_low": float(f"{np.exp(estimate - Z95 * spread):.6g}"),
                "ci_high": float(f"{np.exp(estimate + Z95 * spread):.6g}"),
                "p_value": float(f"{fitted.pvalues[index]:.4g}"),
                **facts,
                "note": "",
            }
        )
    return pd.DataFrame(rows, columns=list(MODEL_COLUMNS))
