"""How a 95 % interval was made, in words beside it: no two kinds of intervals stand side by side without."""

from __future__ import annotations

from collections.abc import Iterable

from medtest.results.cube.intervals import FEW_CLUSTERS
from medtest.results.rates import efr
from medtest.results.rates.differences import SCORE_CLUSTERS

ORDER = (efr.WILSON, efr.BOOTSTRAP, efr.WILSON_CLUSTERS, SCORE_CLUSTERS)
MARKS = {efr.WILSON: "w", efr.BOOTSTRAP: "b", efr.WILSON_CLUSTERS: "c", SCORE_CLUSTERS: "s"}
"""Letters that stand at intervals where several kinds share a table."""


def interval_words(method: str, clusters: str) -> str:
    """Return how an interval was made.

    Args:
        method: ``ci_method`` of a table.
        clusters: What is resampled, in words: ``source cases``, ``clusters of source cases (patients, videos)``.
    """
    few = f"as fewer than {FEW_CLUSTERS} of them"
    return {
        efr.WILSON: "Wilson's score interval, every case by itself",
        efr.BOOTSTRAP: f"bootstrap over {clusters}",
        efr.WILSON_CLUSTERS: f"Wilson's with {clusters} counted once each, {few} have a violation, or have none",
        SCORE_CLUSTERS: f"Tango's score interval with {clusters} counted once each, {few} tell the systems apart, "
        "or all but so few alike",
    }.get(method, method.replace("_", " "))


def short_words(method: str) -> str:
    """Return how an interval was made in two or three words."""
    return {
        efr.WILSON: "Wilson",
        efr.BOOTSTRAP: "bootstrap",
        efr.WILSON_CLUSTERS: "Wilson, by cluster",
        SCORE_CLUSTERS: "score, by cluster",
    }.get(method, method.replace("_", " "))


def legend(methods: Iterable[str], clusters: str) -> str:
    """Return the line below a table that says how its intervals were made, with letters where there are several.

    Args:
        methods: ``ci_method`` of every interval shown.
        clusters: As in :func:`interval_words`.
    """
    there = set(methods)
    known = [method for method in ORDER if method in there]
    if not known:
        return ""
    if len(known) == 1:
        return f"Intervals: 95 %, {interval_words(known[0], clusters)}."
    said = "; ".join(f"{MARKS[method]} {interval_words(method, clusters)}" for method in known)
    return f"Intervals: 95 %; {said}."
