"""Transfer of attacks between systems: ``comparison_transfer.csv``, from the tables of several systems.

One row for each attack, the system on which it was crafted and the system that answers. An attack is a part at an ε
with its steps, so that relations that differ only in ``crafted_on`` are grouped. Noise, which is crafted on no system,
comes last; natural relations are omitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtest.core.deferred import pd
from medtest.results.attacks.settings import CRAFTED, NOISE
from medtest.results.columns import columns_in
from medtest.results.cube.axes import ALL

COLUMNS = columns_in(__file__, "transfer")


def transfer_table(systems: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return the table, with :data:`COLUMNS`; rows of uniform noise come last.

    Args:
        systems: Names of the systems that answered, each with its ``attacks.csv``.
    """
    rows: list[dict[str, Any]] = []
    for name, table in systems:
        for row in table.to_dict("records"):
            if row["dataset"] == ALL and row["role"] in (*CRAFTED, NOISE):
                values: dict[str, Any] = {str(key): value for key, value in row.items()}
                rows.append({**values, "attack": row["part"], "system": name})
    rows.sort(key=lambda row: (row["role"] == NOISE, str(row["attack"]), float(row["epsilon"]), _steps(row)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matrices(table: pd.DataFrame) -> list[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]]]]:
    """Return, for each attack applied to more than one system, its rows by (crafted on, system).

    Args:
        table: Table from :func:`transfer_table`.
    """
    attacks: dict[tuple[Any, ...], dict[tuple[str, str], Mapping[Any, Any]]] = {}
    for row in table.to_dict("records"):
        if row["crafted_on"]:
            key = (str(row["attack"]), float(row["epsilon"]), _steps(row))
            attacks.setdefault(key, {})[str(row["crafted_on"]), str(row["system"])] = row
    tables: list[tuple[str, Mapping[tuple[str, str], Mapping[Any, Any]]]] = []
    for (attack, epsilon, steps), cells in attacks.items():
        if any(crafter != system for crafter, system in cells):
            of = f", {int(steps)} steps" if steps > 0 else ""
            tables.append((f"{attack}, ε = {epsilon:g}/255{of}", cells))
    return tables


def _steps(row: Mapping[Any, Any]) -> float:
    return -1.0 if row["steps"] != row["steps"] else float(row["steps"])
