"""Does what misleads one system mislead another: ``comparison_transfer.csv``, from the tables of several systems.

A row for each attack, the system on which it was crafted and the system that answers. An attack is a part at an ε with
its steps, so that relations that differ in ``crafted_on`` alone stand together. Noise, which is crafted on nothing,
stands below; natural relations are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.results.attacks.settings import CRAFTED, NOISE
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = columns_in(__file__, "transfer")


def transfer_table(systems: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; noise of the same systems stands below, crafted on nothing.

    Args:
        systems: Names of the systems that answered, each with its ``attacks.csv``.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for name, table in systems:
        for row in table.to_dict("records"):
            if row["dataset"] == ALL and row["role"] in (*CRAFTED, NOISE):
                named: dict[str, Any] = {str(key): value for key, value in row.items()}
                rows.append({**named, "attack": row["part"], "system": name})
    rows.sort(key=lambda row: (row["role"] == NOISE, str(row["attack"]), float(row["epsilon"]), _steps(row)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matrices(table: pd.DataFrame) -> list[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]]]]:
    """Return, for each attack that more than one system was shown, its rows by (crafted on, system).

    Args:
        table: What :func:`transfer_table` gave.
    """
    found: dict[tuple[Any, ...], dict[tuple[str, str], Mapping[Any, Any]]] = {}
    for row in table.to_dict("records"):
        if row["crafted_on"]:
            key = (str(row["attack"]), float(row["epsilon"]), _steps(row))
            found.setdefault(key, {})[str(row["crafted_on"]), str(row["system"])] = row
    named: list[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]]]] = []
    for (attack, epsilon, steps), cells in found.items():
        if any(crafter != system for crafter, system in cells):
            of = f", {int(steps)} steps" if steps > 0 else ""
            named.append((f"{attack}, ε = {epsilon:g}/255{of}", cells))
    return named


def _steps(row: Mapping[Any, Any]) -> float:
    return -1.0 if row["steps"] != row["steps"] else float(row["steps"])
