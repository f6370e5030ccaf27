"""Descriptions of how 95 % intervals were computed."""

from __future__ import annotations

from collections.abc import Iterable

from medtest.results.cube.intervals import FEW_CLUSTERS
from medtest.results.rates import efr
from medtest.results.rates.differences import SCORE_CLUSTERS

ORDER = (efr.WILSON, efr.BOOTSTRAP, efr.WILSON_CLUSTERS, SCORE_CLUSTERS)
MARKS = {efr.WILSON: "w", efr.BOOTSTRAP: "b", efr.WILSON_CLUSTERS: "c", SCORE_CLUSTERS: "s"}
"""Letters at intervals of a table that has several kinds."""


def interval_words(method: str, clusters: str) -> str:
    """Return a description of an interval's method.

    Args:
        method: ``ci_method`` of a table.
        clusters: Name of the resampled unit: ``source cases``, ``clusters of source cases (patients, videos)``.
    """
    few = f"used where fewer than {FEW_CLUSTERS} of them"
    return {
        efr.WILSON: "Wilson score interval over cases",
        efr.BOOTSTRAP: f"bootstrap over {clusters}",
        efr.WILSON_CLUSTERS: f"Wilson score interval over {clusters}, {few} have or lack a violation",
        SCORE_CLUSTERS: f"Tango score interval over {clusters}, {few} differ or agree between the systems",
    }.get(method, method.replace("_", " "))


def short_words(method: str) -> str:
    """Return an interval's method in two or three words."""
    return {
        efr.WILSON: "Wilson",
        efr.BOOTSTRAP: "bootstrap",
        efr.WILSON_CLUSTERS: "Wilson, by cluster",
        SCORE_CLUSTERS: "score, by cluster",
    }.get(method, method.replace("_", " "))


def legend(methods: Iterable[str], clusters: str) -> str:
    """Return the line below a table that describes its intervals, with letters if there are several kinds.

    Args:
        methods: ``ci_method`` of every interval shown.
        clusters: As in :func:`interval_words`.
    """
    present = set(methods)
    shown = [method for method in ORDER if method in present]
    if not shown:
        return ""
    if len(shown) == 1:
        return f"95 % intervals: {interval_words(shown[0], clusters)}."
    descriptions = "; ".join(f"{MARKS[method]} {interval_words(method, clusters)}" for method in shown)
    return f"95 % intervals: {descriptions}."
