"""The paper's tables 1 and 2 beside a classifier's own figures under attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from medtest.phantoms.classes import CHEST, DERMOSCOPY, FUNDUS
from medtest.report.charts.heat import percent
from medtest.results.attacks.settings import GENERATOR, WHITE
from medtest.results.cube.axes import ALL
from medtest.results.published import published_attacks

if TYPE_CHECKING:
    from medtest.report.pages.material import Material

_SETS = {"train": "training", "val": "validation"}
"""Data sets of a suite that correspond to the paper's training and validation images."""
_NONE = {"own": "", "own_auc": "", "own_fooling": ""}
_NETWORKS = {DERMOSCOPY.names: "IPMI2019-AttnMel", FUNDUS.names: "Inception v3", CHEST.names: "CheXNet"}


def published(material: Material, rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any] | None:
    """Return the published figures on images of the same classes, with the system's own figures at the same ε.

    Args:
        material: Material of the report.
        rows: Rows of ``attacks.csv``. Those of data sets ``training`` and ``validation``, if any, are compared with the
            paper's GAP.

    Returns:
        None where the classes match none of the paper's.
    """
    classes = material.tables.own.classes
    if classes is None:
        return None
    model = next((model for names, model in _NETWORKS.items() if set(names) == set(classes.names)), "")
    figures = published_attacks.attacked_of(model)
    if not figures:
        return None
    lines = [
        {
            "name": published_attacks.attack_words(figure),
            "accuracy": f"{figure.accuracy_percent:.1f} %",
            "auc": f"{figure.auc:.3f}",
            "fooling": "" if figure.fooling_percent is None else f"{figure.fooling_percent:.1f} %",
            **_own(figure, rows),
        }
        for figure in figures
    ]
    table = published_attacks.TABLES[model]
    words = f"{published_attacks.PAPER}, table {table}: {model} on real images. {published_attacks.gap_words(model)}"
    return {"rows": lines, "words": f"{words} {published_attacks.CONTRADICTION.get(model, '')}".strip()}


def _own(figure: SimpleNamespace, rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Return the system's own figures at the same setting; empty strings where there are none."""
    if figure.attack == published_attacks.CLEAN:
        clean = [float(row["clean"]) for row in rows if row["dataset"] == ALL and row["clean"] == row["clean"]]
        return _NONE | {"own": percent(100 * max(clean)) if clean else ""}
    sets = {str(row["dataset"]) for row in rows}
    preferred = _SETS[figure.setting.rpartition(" ")[2]] if figure.attack == "GAP" else ALL
    dataset = preferred if preferred in sets else ALL if preferred != _SETS["train"] else ""
    row = next((row for row in rows if row["dataset"] == dataset and _same(figure, row)), None)
    if row is None:
        return _NONE
    auroc = row["auroc"]
    return {
        "own": percent(100 * row["accuracy"]),
        "own_auc": f"{auroc:.3f}" if auroc == auroc else "",
        "own_fooling": percent(100 * row["fooling"]),
    }


def _same(figure: SimpleNamespace, row: Mapping[Any, Any]) -> bool:
    if row["norm"] != "linf" or row["cases"] == 0:
        return False
    if figure.attack == "GAP":
        return bool(row["role"] == GENERATOR and figure.setting.startswith(f"Linf={row['epsilon']:g} "))
    steps = "" if row["steps"] != row["steps"] else f"{int(row['steps'])}"
    of_pgd = row["role"] == WHITE and row["part"] in ("pgd", "fgsm")
    return bool(of_pgd and figure.setting == f"eps={row['epsilon']:g}/255 t={steps}")
