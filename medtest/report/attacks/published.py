"""The paper's tables 1 and 2 beside a classifier's own figures under attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from medtest.phantoms.classes import CHEST, DERMOSCOPY, FUNDUS
from medtest.report.charts.heat import percent
from medtest.results.attacks.settings import GENERATOR, WHITE
from medtest.results.cube.axes import ALL
from medtest.results.published import published_attacks

if TYPE_CHECKING:
    from medtest.report.pages.material import Material

_SETS = {"train": "training", "val": "validation"}
"""Data sets of a suite that stand for the paper's training and validation images."""
_NETWORKS = {DERMOSCOPY.names: "IPMI2019-AttnMel", FUNDUS.names: "Inception v3", CHEST.names: "CheXNet"}


def published(material: Material, rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any] | None:
    """Return the published figures on images of the same classes, and the own ones at the same written ε.

    Args:
        material: What the report is made of.
        rows: Rows of ``attacks.csv``; of GAP those of data sets ``training`` and ``validation`` stand beside the
            paper's, where there are such.

    Returns:
        None where the classes are none of the paper's.
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
            "name": one.name,
            "accuracy": f"{one.accuracy_percent:.1f} %",
            "auc": f"{one.auc:.3f}",
            "fooling": "" if one.fooling_percent is None else f"{one.fooling_percent:.1f} %",
            **_own(one, rows),
        }
        for one in figures
    ]
    table = published_attacks.TABLES[model]
    words = f"{published_attacks.PAPER}, table {table}: {model} on real images. {published_attacks.gap_words(model)}"
    return {"rows": lines, "words": f"{words} {published_attacks.CONTRADICTION.get(model, '')}".strip()}


def _own(one: published_attacks.PublishedAttack, rows: Sequence[Mapping[Any, Any]]) -> dict[str, str]:
    """Return the own figures at the same written setting; empty where there is none."""
    if one.attack == published_attacks.CLEAN:
        known = [float(row["clean"]) for row in rows if row["dataset"] == ALL and row["clean"] == row["clean"]]
        return {"own": percent(100 * max(known)) if known else "", "own_auc": "", "own_fooling": ""}
    sets = {str(row["dataset"]) for row in rows}
    asked = _SETS[one.setting.rpartition(" ")[2]] if one.attack == "GAP" else ALL
    dataset = asked if asked in sets else ALL if asked != _SETS["train"] else ""
    row = next((row for row in rows if row["dataset"] == dataset and _same(one, row)), None)
    if row is None:
        return {"own": "", "own_auc": "", "own_fooling": ""}
    auroc = row["auroc"]
    return {
        "own": percent(100 * row["accuracy"]),
        "own_auc": f"{auroc:.3f}" if auroc == auroc else "",
        "own_fooling": percent(100 * row["fooling"]),
    }


def _same(one: published_attacks.PublishedAttack, row: Mapping[Any, Any]) -> bool:
    if row["norm"] != "linf" or row["cases"] == 0:
        return False
    if one.attack == "GAP":
        return row["role"] == GENERATOR and one.setting.startswith(f"Linf={row['epsilon']:g} ")
    steps = "" if row["steps"] != row["steps"] else f"{int(row['steps'])}"
    return (
        row["role"] == WHITE
        and row["part"] in ("pgd", "fgsm")
        and one.setting == f"eps={row['epsilon']:g}/255 t={steps}"
    )
