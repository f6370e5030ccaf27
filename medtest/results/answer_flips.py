"""Flips per question and relation: rates, net of the model's own unsteadiness, tests, and which way they went.

A flip is a FAIL against the model's own answer to the source. Some flips come without any cause: the unperturbed image
asked again shows how many (relation ``unchanged``), and ``net`` is the rate under a relation less that rate.

A cell is one question under one relation. Its rate has Wilson's interval, its net rate Newcombe's for the difference of
independent proportions (R. G. Newcombe, "Interval estimation for the difference between independent proportions",
Statistics in Medicine 17, 1998, method 10). Several severities or repeats of one image are not independent: images
are counted, each with the share of its cases that flipped. Pools (``all`` questions, ``overall`` relations) are
resampled by images, from which both rates are drawn together. A rate for which fewer than ten images flipped, or fewer
than ten did not, has Wilson's interval in place of the bootstrap's; the two intervals are then joined as Newcombe joins
his (the method for any two intervals: G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008).

``p`` asks whether a relation flips more or fewer answers than asking again does: McNemar's exact test on each image's
first cases of both, images exchanged whole. ``p_holm`` is corrected over all cells of the table (S. Holm, 1979).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medtest.results import mcnemar, statistics
from medtest.results.answer_rows import SOURCE, UNCHANGED
from medtest.results.paired import holm
from medtest.vqa.questions import by_name, in_slide_order

if TYPE_CHECKING:
    import pandas as pd

ALL, OVERALL = "all", "overall"

COLUMNS = (
    "item",
    "question",
    "relation",
    "flips",
    "cases",
    "unchanged_flips",
    "unchanged_cases",
    "rate",
    "rate_low",
    "rate_high",
    "net",
    "ci_low",
    "ci_high",
    "ci_method",
    "p",
    "p_holm",
    "refusals",
    "not_judged",
)
DIRECTION_COLUMNS = (
    "item",
    "question",
    "relation",
    "cases",
    "right_to_wrong",
    "wrong_to_right",
    "wrong_to_wrong",
    "accuracy_source",
    "accuracy",
    "p",
    "p_holm",
)

Floats = NDArray[np.float64]


def newcombe(k: float, n: float, k0: float, n0: float) -> tuple[float, float]:
    """Return the ends of Newcombe's 95 % interval for k / n - k0 / n0; NaN where there is no case.

    Args:
        k: Successes, or expected successes, in [0, n].
        n: Independent cases.
        k0: Successes of the other group.
        n0: Cases of the other group.
    """
    if n <= 0 or n0 <= 0:
        return float("nan"), float("nan")
    return _joined(k / n, _wilson(k, n), k0 / n0, _wilson(k0, n0))


def _wilson(k: float, n: float) -> tuple[float, float]:
    low, high = statistics.wilson(k, n)
    return float(low), float(high)


def _joined(rate: float, ends: tuple[float, float], rate0: float, ends0: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the interval for rate - rate0 from those of both."""
    below = float(np.hypot(rate - ends[0], ends0[1] - rate0))
    above = float(np.hypot(ends[1] - rate, rate0 - ends0[0]))
    return rate - rate0 - below, rate - rate0 + above


def flip_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return flips of every question × relation with their pools, with exactly :data:`COLUMNS`.

    ``item`` is the question's name, ``question`` its wording. Rates and intervals are fractions. ``not_judged`` counts
    answers without a verdict (``may change``, ``skip``, unparsed, no answer to the source), which are not in ``cases``;
    ``refusals`` counts refused answers, which are in ``cases`` and flips where the source was answered.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answer_rows.frame_of` gives them.
    """
    import pandas as pd

    followups = frame[frame["relation"] != SOURCE]
    if followups.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    images = {name: number for number, name in enumerate(dict.fromkeys(frame["image"]))}
    resampler = statistics.Resampler(len(images), "vqa flips")
    items = [*_in_order(followups["item"]), ALL]
    relations = [name for name in dict.fromkeys(followups["relation"]) if name != UNCHANGED]
    rows: list[dict[str, object]] = []
    for item in items:
        asked = followups if item == ALL else followups[followups["item"] == item]
        floor = asked[asked["relation"] == UNCHANGED]
        for relation in [*relations, OVERALL]:
            chosen = asked["relation"] != UNCHANGED if relation == OVERALL else asked["relation"] == relation
            cases = asked[chosen]
            if not cases.empty:
                rows.append(_cell(item, relation, cases, floor, images, resampler))
    return _with_holm(pd.DataFrame(rows, columns=list(COLUMNS)))


def _in_order(names: pd.Series) -> list[str]:
    there = list(dict.fromkeys(names))
    known = [one.name for one in in_slide_order() if one.name in set(there)]
    return [*known, *(name for name in there if name not in set(known))]


def _cell(
    item: str,
    relation: str,
    cases: pd.DataFrame,
    floor: pd.DataFrame,
    images: dict[str, int],
    resampler: statistics.Resampler,
) -> dict[str, object]:
    found, again = _per_image(cases, images), _per_image(floor, images)
    n, n0 = float((found[:, 1] > 0).sum()), float((again[:, 1] > 0).sum())
    rate, rate0 = _rate(found.sum(0)), _rate(again.sum(0))
    pool = item == ALL or relation == OVERALL
    resampled = [pool and not _few(one) for one in (found, again)]
    ends = _bootstrap(found, None, resampler) if resampled[0] else _wilson(np.nan_to_num(rate) * n, n)
    ends0 = _bootstrap(again, None, resampler) if resampled[1] else _wilson(np.nan_to_num(rate0) * n0, n0)
    low, high = _bootstrap(found, again, resampler) if all(resampled) else _joined(rate, ends, rate0, ends0)
    method = "bootstrap" if all(resampled) else "wilson and bootstrap" if any(resampled) else "newcombe"
    known = by_name(item)
    return {
        "item": item,
        "question": "" if known is None else known.text,
        "relation": relation,
        "flips": int(found[:, 0].sum()),
        "cases": int(found[:, 1].sum()),
        "unchanged_flips": int(again[:, 0].sum()),
        "unchanged_cases": int(again[:, 1].sum()),
        "rate": _round(rate),
        "rate_low": _round(ends[0]),
        "rate_high": _round(ends[1]),
        "net": _round(rate - rate0),
        "ci_low": _round(low),
        "ci_high": _round(high),
        "ci_method": method if n and n0 else "",
        "p": _against_unchanged(cases, floor) if not pool and n and n0 else float("nan"),
        "p_holm": float("nan"),
        "refusals": int((cases["state"] == "refusal").sum()),
        "not_judged": int(cases["flip"].isna().sum()),
    }


def _per_image(cases: pd.DataFrame, images: dict[str, int]) -> Floats:
    """Return images × 2: flips and judged cases."""
    judged = cases[cases["flip"].notna()]
    number = judged["image"].map(images).to_numpy(dtype=np.int64)
    flips = np.bincount(number, weights=judged["flip"].to_numpy(dtype=np.float64), minlength=len(images))
    return np.stack([flips, np.bincount(number, minlength=len(images)).astype(np.float64)], axis=1)


def _rate(sums: Floats) -> float:
    return float(sums[0] / sums[1]) if sums[1] > 0 else float("nan")


def _round(value: float) -> float:
    return round(float(value), 6)


def _few(found: Floats) -> bool:
    flipped = int((found[:, 0] > 0).sum())
    steady = int((found[:, 0] < found[:, 1]).sum())
    return min(flipped, steady) < statistics.FEW_CLUSTERS


def _bootstrap(found: Floats, again: Floats | None, resampler: statistics.Resampler) -> tuple[float, float]:
    both = found if again is None else np.concatenate([found, again], axis=1)
    draws = resampler.sums(both.astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = draws[:, 0] / draws[:, 1]
        if again is not None:
            rates = rates - draws[:, 2] / draws[:, 3]
    low, high = statistics.percentile_interval(rates)
    return float(low), float(high)


def _against_unchanged(cases: pd.DataFrame, floor: pd.DataFrame) -> float:
    """Return McNemar's exact p on equally many first cases of each image, with the relation and without."""
    order = ["severity", "repeat"]
    with_it = cases[cases["flip"].notna()].sort_values(order).groupby("image", sort=True)["flip"].agg(list)
    without = floor[floor["flip"].notna()].sort_values(order).groupby("image", sort=True)["flip"].agg(list)
    net: list[int] = []
    for image in with_it.index.intersection(without.index):
        one, other = with_it[image], without[image]
        count = min(len(one), len(other))
        net.append(int(sum(one[:count]) - sum(other[:count])))
    return mcnemar.clustered(net) if net else float("nan")


def _with_holm(table: pd.DataFrame) -> pd.DataFrame:
    tested = np.flatnonzero(table["p"].notna().to_numpy())
    corrected = np.full(len(table), np.nan)
    corrected[tested] = holm([float(value) for value in table["p"].to_numpy(dtype=np.float64)[tested]])
    return table.assign(p_holm=corrected)


def direction_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return which way answers went between right and wrong, with exactly :data:`DIRECTION_COLUMNS`.

    Only cases with a truth, judged at the source and after the relation. ``wrong_to_wrong`` counts answers that were
    wrong, are wrong and flipped. ``p`` is McNemar's exact test on right and wrong, images exchanged whole; the
    difference of the accuracies alone hides changes that cancel out.

    Args:
        frame: Rows of one system, as :func:`medtest.results.answer_rows.frame_of` gives them.
    """
    import pandas as pd

    known = frame[(frame["relation"] != SOURCE) & frame["right"].notna() & frame["source_right"].notna()]
    rows: list[dict[str, object]] = []
    relations = list(dict.fromkeys(known["relation"]))
    for item in _in_order(known["item"]):
        for relation in relations:
            cases = known[(known["item"] == item) & (known["relation"] == relation)]
            if not cases.empty:
                rows.append(_direction(item, relation, cases))
    return _with_holm(pd.DataFrame(rows, columns=list(DIRECTION_COLUMNS)))


def _direction(item: str, relation: str, cases: pd.DataFrame) -> dict[str, object]:
    before, after = cases["source_right"] == 1, cases["right"] == 1
    lost, won = before & ~after, ~before & after
    net = (lost.astype(int) - won.astype(int)).groupby(cases["image"]).sum()
    known = by_name(item)
    return {
        "item": item,
        "question": "" if known is None else known.text,
        "relation": relation,
        "cases": len(cases),
        "right_to_wrong": int(lost.sum()),
        "wrong_to_right": int(won.sum()),
        "wrong_to_wrong": int((~before & ~after & (cases["flip"] == 1)).sum()),
        "accuracy_source": _round(float(before.mean())),
        "accuracy": _round(float(after.mean())),
        "p": mcnemar.clustered(net.to_numpy(dtype=np.int64)) if relation != UNCHANGED else float("nan"),
        "p_holm": float("nan"),
    }
