"""The report's section on attacks: remaining accuracy, validity checks and published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.core.cases import SOURCE
from medtest.core.deferred import pd
from medtest.report.attacks.curves import epsilon_panels, smallest_panels
from medtest.report.attacks.published import published
from medtest.report.charts.heat import WARN, percent, rows_of
from medtest.report.pages.words import number_words, score_words
from medtest.results.attacks.checking.found import FAILS, MISLEADING, NOT_CHECKED, OK, TITLES, TOO_KIND
from medtest.results.attacks.settings import FLOOR, NATURAL, NOISE
from medtest.results.cube.axes import ALL

if TYPE_CHECKING:
    from medtest.report.pages.material import Material
    from medtest.results.attacks.checking.checks import Warn

_WHY = 12
_BANDS = 60


def attacks(material: Material) -> dict[str, Any]:
    """Return the template's data on attacks and on relations at equal similarity; None where the suite has none.

    Args:
        material: Material of the report.
    """
    tables = material.tables.attacks
    at_ssim = _at_ssim(tables.named.get("efr_at_ssim.csv"))
    shown = tables.named.get("attacks.csv")
    checks = tables.named.get("attack_checks.csv")
    if checks is None or ((shown is None or shown.empty) and checks.empty):
        return {"attacks": None, "at_ssim": at_ssim}
    rows = [] if shown is None else rows_of(shown, dataset=ALL)
    crafted = [row for row in rows if row["role"] not in (NATURAL, FLOOR)]
    measure = str(rows[0]["measure"]) if rows else ""
    page = {
        "phantom": material.wanted.phantom,
        "measure": measure,
        "auroc": any(row["auroc"] == row["auroc"] for row in crafted),
        "settings": [_setting(row) for row in crafted],
        "checks": _checks(checks),
        "verdict": tables.verdict,
        "failed": _failed(checks, tables.warn),
        "panels": epsilon_panels(crafted, measure, clean=_clean(rows)),
        "smallest": _smallest(tables.named.get("smallest_epsilon.csv")),
        "smallest_panels": smallest_panels(tables.named.get("smallest_epsilon_curve.csv")),
        "published": published(material, [] if shown is None else rows_of(shown)),
    }
    return {"attacks": page, "at_ssim": at_ssim}


def _clean(rows: Sequence[Mapping[Any, Any]]) -> float:
    rates = [float(row["clean"]) for row in rows if row["clean"] == row["clean"]]
    return max(rates, default=float("nan"))


def _setting(row: Mapping[Any, Any]) -> dict[str, Any]:
    failed = [TITLES[name] for name in str(row["checks_failed"]).split()]
    steps = "" if row["steps"] != row["steps"] else f"{int(row['steps'])}"
    return {
        "name": str(row["relation"]).replace("_", " "),
        "severity": row["severity"],
        "epsilon": f"{row['epsilon']:g}",
        "norm": " L2" if row["norm"] == "l2" else "",
        "steps": steps,
        "role": (row["role"], "" if row["role"] == NOISE else f"made on {row['crafted_on']}"),
        "cases": f"{row['cases']:,}",
        "clean": share(row["clean"]),
        "accuracy": _parted(row, "accuracy"),
        "fooling": _parted(row, "fooling"),
        "auroc": _parted(row, "auroc", decimals=True),
        "ssim": number_words(row["ssim"], ".3f"),
        "out": f"{row['errors']:,} / {row['skipped']:,}",
        "warn": f" {WARN}" if failed else "",
        "failed": f"fails: {'; '.join(failed)}" if failed else "",
    }


def share(value: Any) -> str:
    """Return a fraction in percent, "" for None or NaN."""
    return percent(None if value is None else 100 * float(value))


def _parted(row: Mapping[Any, Any], name: str, *, decimals: bool = False) -> tuple[str, str]:
    """Return a figure and its interval as two strings."""
    value, _, ends = ranged(row, name, decimals=decimals).partition(" (")
    return value, ends.rstrip(")")


def ranged(row: Mapping[Any, Any], name: str, *, decimals: bool = False) -> str:
    """Return a fraction of a row in percent (or with three decimals), followed by its interval in brackets."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    value_words = number_words(value, ".3f") if decimals else share(value)
    if not value_words or low != low or low is None:
        return value_words
    ends = f"{low:.3f} to {high:.3f}" if decimals else f"{100 * low:.0f} to {100 * high:.0f}"
    return f"{value_words} ({ends})"


def _checks(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the counts of each verdict for each check."""
    counts = []
    for check, title in TITLES.items():
        verdicts = [str(verdict) for verdict in table.loc[(table["check"] == check).to_numpy(dtype=bool), "verdict"]]
        if verdicts:
            counts.append(
                {
                    "title": title,
                    "ok": verdicts.count(OK),
                    "fails": verdicts.count(FAILS),
                    "not_checked": verdicts.count(NOT_CHECKED),
                }
            )
    return counts


def _failed(table: pd.DataFrame, warn: Warn) -> dict[str, Any]:
    """Return the failing checks with their reasons, except the verdict on the network, which has its own field."""
    rows = [row for row in table.to_dict("records") if row["verdict"] == FAILS and row["check"] != MISLEADING]
    shown = [
        {
            "name": str(row["relation"]).replace("_", " "),
            "severity": "" if row["severity"] == ALL else f"severity {row['severity']}",
            "title": TITLES[str(row["check"])],
            "why": str(row["why"]),
        }
        for row in rows[:_WHY]
    ]
    kind = any(row["relation"] == SOURCE or set(warn(row["relation"], row["severity"])) & TOO_KIND for row in rows)
    return {"rows": shown, "more": len(rows) - len(shown), "kind": kind}


def _smallest(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return the median smallest ε of each relation."""
    rows = [] if table is None else rows_of(table, dataset=ALL)
    return [
        {
            "name": str(row["relation"]).replace("_", " "),
            "severity": row["severity"],
            "flipped": f"{row['flipped']:,} of {row['cases']:,}",
            "bound": f"{row['bound']:g}",
            "median": number_words(row["median"], ".3g") or f"above {row['bound']:g}",
            "range": f"{number_words(row['median_low'], '.3g') or '–'} to "
            f"{number_words(row['median_high'], '.3g') or 'beyond'}"
            if row["clusters"] > 1
            else "–",
        }
        for row in rows
    ]


def _at_ssim(table: pd.DataFrame | None) -> dict[str, Any] | None:
    """Return relations by rank within bands of SSIM, leaving out those alone in their band."""
    if table is None or table.empty:
        return None
    rows = [row for row in rows_of(table, dataset=ALL) if row["rank"] == row["rank"] and row["rank"] is not None]
    rows = [row for row in rows if isinstance(row["rank"], int)][::-1]
    bands: dict[str, list[Mapping[Any, Any]]] = {}
    for row in rows:
        has_target = row["target"] is not None and row["target"] == row["target"]
        band = f"SSIM {row['ssim_from']:g} to {row['ssim_to']:g}"
        bands.setdefault(f"calibrated to SSIM {row['target']:g}" if has_target else band, []).insert(0, row)
    if not bands:
        return None
    first = rows[0]
    return {
        "score": score_words(str(first["score"])),
        "against": first["against"],
        "bands": [
            {
                "name": name,
                "rows": [
                    {
                        "rank": row["rank"],
                        "name": str(row["relation"]).replace("_", " "),
                        "role": row["role"],
                        "efr": percent(row["efr_percent"]),
                        "range": f"{row['ci_low']:.1f} to {row['ci_high']:.1f}",
                        "counts": f"{row['violations']:,} of {row['cases']:,}",
                        "difference": _difference(row),
                    }
                    for row in own[:_BANDS]
                ],
            }
            for name, own in bands.items()
        ],
    }


def _difference(row: Mapping[Any, Any]) -> str:
    if row["difference"] != row["difference"]:
        return ""
    return f"{row['difference']:+.1f} ({row['difference_low']:+.1f} to {row['difference_high']:+.1f})"
