"""Report section on the output of ``medtest inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from medtest.core.deferred import pd
from medtest.report.pages.material import INDEX, INSIDE, Material, sample_index, strips

_LAYERS = {
    "relation": "relation",
    "severity": "severity",
    "layer": "layer",
    "cases": "cases",
    "cosine": "cosine with the source",
    "distance": "distance",
    "noise_distance": "of uniform noise",
    "knn_clean": "k-NN, clean",
    "knn_attacked": "k-NN, follow-ups",
    "silhouette_clean": "silhouette, clean",
    "silhouette_attacked": "silhouette, follow-ups",
}
_MAPS = {
    "relation": "relation",
    "severity": "severity",
    "map": "map",
    "cases": "cases",
    "rank_correlation": "rank correlation",
    "lesion_before": "in the lesion, before",
    "lesion_after": "in the lesion, after",
}
_FIRST = {"relation": "relation", "severity": "severity", "first_layer": "first layer beyond noise"}
_COUNTS = ("severity", "cases")


def inside(material: Material) -> dict[str, Any] | None:
    """Return the template's data, or None without an inspection.

    Args:
        material: Material of the report.
    """
    folder = material.folder
    if not (folder / INSIDE / INDEX).is_file():
        return None
    entries = [] if material.wanted.images == "none" else sample_index(folder, INDEX, INSIDE)
    tables = [
        ("By layer", _shown(folder / INSIDE / "layers.csv", _LAYERS)),
        (
            "Where follow-ups first move features further than noise",
            _shown(folder / INSIDE / "first_layer.csv", _FIRST),
        ),
        ("Saliency and attention", _shown(folder / INSIDE / "maps_by_relation.csv", _MAPS)),
    ]
    return {
        "pictures": [
            {"words": str(facts.get("words", "")), **picture} for facts, picture in strips(folder, entries, INSIDE)
        ],
        "tables": [{"title": title, **table} for title, table in tables if table is not None],
    }


def _shown(file: Path, columns: dict[str, str]) -> dict[str, Any] | None:
    """Return the columns of a table as text; None if it is missing or unreadable."""
    try:
        table: pd.DataFrame = pd.read_csv(file)
    except (OSError, ValueError):
        return None
    own = [name for name in columns if name in table.columns and table[name].notna().any()]
    rows = [[_text(name, row[name]) for name in own] for row in table.to_dict("records")]
    return {"columns": [columns[name] for name in own], "rows": rows}


def _text(name: str, value: Any) -> str:
    if value is None or value != value:
        return "none" if name == "first_layer" else ""
    return f"{int(value)}" if name in _COUNTS else f"{value:.3f}" if isinstance(value, float) else str(value)
