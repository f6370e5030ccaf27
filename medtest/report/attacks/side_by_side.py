"""Comparison of systems under attack: the transfer matrix, and the paper's table 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.core.deferred import pd
from medtest.report.charts.heat import WARN, blank, filled, heat_map, percent
from medtest.results.attacks.settings import WHITE
from medtest.results.attacks.transfer import matrices, transfer_table
from medtest.results.cube.axes import ALL
from medtest.results.published import published_attacks, published_labels

if TYPE_CHECKING:
    from medtest.report.pages.material import Material

_EPSILON, _STEPS = 4.0, 4
"""ε and steps of the attack in the paper's table 4."""


def transfer(materials: Sequence[Material]) -> pd.DataFrame:
    """Return the transfer table; empty where no attack was crafted.

    Args:
        materials: Material of each system.
    """
    return transfer_table(_attacks(materials))


def transfer_heats(materials: Sequence[Material]) -> list[dict[str, Any]]:
    """Return a heat map for each attack that was crafted on one system and applied to another.

    Args:
        materials: Material of each system.
    """
    systems = [material.system for material in materials]
    heats = []
    for name, cells in matrices(transfer(materials)):
        crafters = list(dict.fromkeys(crafter for crafter, _ in cells))
        measure = str(next(iter(cells.values()))["measure"])
        heats.append(
            heat_map(
                crafters,
                {},
                title=f"Transfer: {name}",
                lead=f"Made on the system of the row, shown to that of the column: {measure}, its interval, fooling "
                "rate. The diagonal shows each system under its own attack. Over all cases of each system.",
                columns=systems,
                cells=_row(cells, systems),
            )
        )
    return heats


def _row(
    cells: Mapping[tuple[str, str], Mapping[Any, Any]], systems: Sequence[str]
) -> Callable[[str], list[dict[str, Any]]]:
    return lambda crafter: [_cell(cells.get((crafter, system))) for system in systems]


def _attacks(materials: Sequence[Material]) -> list[tuple[str, pd.DataFrame]]:
    tables = [(material.system, material.tables.attacks.named.get("attacks.csv")) for material in materials]
    return [(name, table) for name, table in tables if table is not None and not table.empty]


def _cell(row: Mapping[Any, Any] | None) -> dict[str, Any]:
    if row is None or row["accuracy"] != row["accuracy"]:
        return blank("" if row is None else "no case")
    lines = [f"{100 * row['accuracy_low']:.0f}\N{EN DASH}{100 * row['accuracy_high']:.0f}"]
    lines.append(f"fooled {percent(100 * row['fooling'])}" if row["fooling"] == row["fooling"] else "")
    return filled(100 * (1 - row["accuracy"]), lines, value=percent(100 * row["accuracy"]))


def table_four(materials: Sequence[Material]) -> dict[str, Any] | None:
    """Return the paper's table 4 for these systems, with the published rows below.

    Columns are clean accuracy, accuracy under PGD (4/255, 4 steps) and relative flip probability: that of a system
    divided by that of ``reference=`` or, without one, of AttnMel. None where no system has both such an attack and
    sequences.

    Args:
        materials: Material of each system.
    """
    rows = [_row_of(material) for material in materials]
    if not any(row["attacked"] and row["fp"] == row["fp"] for row in rows):
        return None
    base = next((row["fp"] for row in rows if str(row["name"]).startswith("attnmel") and row["fp"] == row["fp"]), None)
    for row in rows:
        if not row["rfp"] and base and row["fp"] == row["fp"]:
            row["rfp"] = f"{row['fp'] / base:.2f}"
    shown = [{**row, "fp": percent(100 * row["fp"]) if row["fp"] == row["fp"] else ""} for row in rows]
    published = [
        {
            "name": row.model,
            "clean": f"{row.accuracy_percent:.1f} %",
            "attacked": f"{row.adversarial_percent:.1f} %",
            "rfp": f"{row.rfp:.2f}",
        }
        for row in published_labels.relative()
    ]
    defended = ", ".join(f"{row.model} {row.defended_percent:.1f} %" for row in published_labels.flips())
    return {
        "rows": shown,
        "published": published,
        "words": f"{published_attacks.PAPER}, table 4, on real images; flip probability after its adversarial training "
        f"MPAdvT: {defended}. {published_attacks.gap_words('')}",
    }


def _row_of(material: Material) -> dict[str, Any]:
    attacks = material.tables.attacks.named.get("attacks.csv")
    own = [] if attacks is None else [row for row in attacks.to_dict("records") if _is_of_table_four(row)]
    return {
        "name": material.system,
        "clean": percent(100 * own[0]["clean"]) if own else "",
        "attacked": f"{percent(100 * own[0]['accuracy'])}{f' {WARN}' if own[0]['checks_failed'] else ''}"
        if own
        else "",
        **_flips(material.tables.own.flip_probability),
    }


def _is_of_table_four(row: Mapping[Any, Any]) -> bool:
    return bool(
        row["dataset"] == ALL
        and row["role"] == WHITE
        and row["part"] == "pgd"
        and row["norm"] == "linf"
        and row["epsilon"] == _EPSILON
        and row["steps"] == _STEPS
        and row["cases"]
    )


def _flips(probabilities: tuple[float, float] | None) -> dict[str, Any]:
    fp, rfp = (float("nan"), float("nan")) if probabilities is None else probabilities
    return {"fp": fp, "rfp": "" if rfp != rfp else f"{rfp:.2f}"}
