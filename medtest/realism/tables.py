"""Tables of a comparison with real artefacts: the same rows for CSV files, console and page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from medtest.realism.classifier import Auc
from medtest.realism.compared import SPREADS, StatisticRow
from medtest.realism.measures import STATISTICS
from medtest.realism.patches import MOST_GAIN
from medtest.realism.run import PatchResult, Realism
from medtest.realism.seams import FEWEST_PATCHES, HIGHEST_SEAM, LOWEST_HARD, SeamResult

Row = dict[str, Any]
MOST_DIFFERENCES = 3
_QUARTILES = ("q1", "median", "q3")

TARGETS: Mapping[str, str] = {
    "statistics": "made median inside the real quartiles; ratio of interquartile ranges "
    f"{SPREADS[0]:g} to {SPREADS[1]:g}",
    "patches": f"gain at most {MOST_GAIN:.2f}",
    "seams": f"upper end at most {HIGHEST_SEAM:.2f}; hard at least {LOWEST_HARD:.2f}; untouched covers 0.5; "
    f"{FEWEST_PATCHES} patches each",
}
"""Targets in words, by table."""


def csv_tables(result: Realism) -> dict[str, list[Row]]:
    """Return the rows of every CSV file by its name without suffix."""
    return {
        "statistics": [_statistic(row) for row in result.statistics],
        "patches": [
            {
                "relation": row.relation,
                **_auc("artefact", row.artefact),
                **_auc("clean", row.clean),
                "gain": row.gain.value,
                "gain_low": row.gain.low,
                "gain_high": row.gain.high,
                "verdict": patch_verdict(row.clean, row.gain),
                "differences": differences_words(row),
            }
            for row in result.patches
        ],
        "seams": [
            {
                "relation": row.relation,
                **_auc("seam", row.seam),
                **_auc("hard", row.hard),
                **_auc("untouched", row.untouched),
                "verdict": row.verdict,
                "reason": row.reason,
            }
            for row in result.seams
        ],
        "levels": levels(result),
        "pictures": [
            {"relation": relation, "side": side, "name": sample.name, "group": sample.group}
            | {"severity": sample.severity if side == "made" else None}
            | {name: sample.values[name] for name in STATISTICS}
            for side, samples in (("real", result.real), ("made", result.made))
            for relation, own in samples.items()
            for sample in own
        ],
    }


def levels(result: Realism) -> list[Row]:
    """Return the made and skipped cases of each relation and severity."""
    counted = Counter((relation, s.severity) for relation, samples in result.made.items() for s in samples)
    keys = sorted({*counted, *result.skipped})
    return [
        {"relation": relation, "severity": severity, "made": counted[relation, severity]}
        | {"skipped": result.skipped.get((relation, severity), 0)}
        for relation, severity in keys
    ]


def patch_verdict(clean: Auc, gain: Auc) -> str:
    """Return ``met``, ``missed``, ``none`` without figures, or ``weak`` if clean tissue leaves no room for the gain."""
    if math.isnan(gain.value):
        return "none"
    if clean.value > 1 - MOST_GAIN:
        return "weak"
    return "met" if gain.value <= MOST_GAIN else "missed"


def statistic_cells(row: StatisticRow) -> list[str]:
    """Return a statistic in words: numbers of pictures, quartiles of both, share inside, ratio, verdict."""
    share = f"{100 * row.inside:.0f} % ({100 * row.inside_interval[0]:.0f} to {100 * row.inside_interval[1]:.0f})"
    return [
        f"{row.real_n} / {row.made_n}",
        quartiles(row.real),
        quartiles(row.made),
        "–" if math.isnan(row.inside) else share,
        with_interval(row.ratio, row.ratio_interval),
        row.verdict,
    ]


def patch_cells(row: PatchResult) -> list[str]:
    """Return the patch test of a relation in words: three areas, numbers of patches, differences, verdict."""
    areas = [auc_words(auc) for auc in (row.artefact, row.clean, row.gain)]
    return [*areas, patch_words(row.artefact), differences_words(row), patch_verdict(row.clean, row.gain)]


def differences_words(row: PatchResult) -> str:
    """Return the features in which made artefacts differ most from real ones, beyond clean tissue."""
    return ", ".join(f"{name} {shift:+.1f}" for name, shift in row.differences[:MOST_DIFFERENCES])


def seam_cells(row: SeamResult) -> list[str]:
    """Return the seam test of a relation in words: three areas, numbers of patches or a reason, verdict."""
    areas = [auc_words(auc) for auc in (row.seam, row.hard, row.untouched)]
    return [*areas, row.reason or patch_words(row.seam), row.verdict]


def quartiles(values: tuple[float, float, float]) -> str:
    """Return three quartiles in words; a dash without any."""
    return "–" if math.isnan(values[1]) else " / ".join(number(value) for value in values)


def with_interval(value: float, ends: tuple[float, float]) -> str:
    """Return a number with its interval; a dash for NaN."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if math.isnan(ends[0]) else f"{value:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"


def auc_words(auc: Auc) -> str:
    """Return an area under the ROC curve with its interval."""
    return with_interval(auc.value, (auc.low, auc.high))


def patch_words(auc: Auc) -> str:
    """Return the numbers of patches of both sorts, and of their groups."""
    return f"{auc.counts[0]:,} / {auc.counts[1]:,} of {auc.groups[0]} / {auc.groups[1]} groups"


def number(value: float) -> str:
    """Return a number with three significant digits at most, two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:.1f}"


def _statistic(row: StatisticRow) -> Row:
    return {
        "relation": row.relation,
        "statistic": row.statistic,
        "real_n": row.real_n,
        "real_groups": row.real_groups,
        "made_n": row.made_n,
        **{f"real_{name}": value for name, value in zip(_QUARTILES, row.real, strict=True)},
        **{f"made_{name}": value for name, value in zip(_QUARTILES, row.made, strict=True)},
        "made_median_low": row.made_median[0],
        "made_median_high": row.made_median[1],
        "inside": row.inside,
        "inside_low": row.inside_interval[0],
        "inside_high": row.inside_interval[1],
        "ratio": row.ratio,
        "ratio_low": row.ratio_interval[0],
        "ratio_high": row.ratio_interval[1],
        "median_inside": row.median_inside,
        "weak": row.weak,
        "verdict": row.verdict,
    }


def _auc(name: str, auc: Auc) -> Row:
    first, second = auc.counts
    return {name: auc.value, f"{name}_low": auc.low, f"{name}_high": auc.high} | {
        f"{name}_n": first,
        f"{name}_against": second,
    }
