"""Tables over all inspected cases: by relation, severity and layer or map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtest.core.deferred import pd
from medtest.inside import space


def layer_table(rows: Sequence[Mapping[str, Any]], features: space.Features, layers: Sequence[str]) -> pd.DataFrame:
    """Return the effect of follow-ups on each layer.

    Args:
        rows: Cases × layers: ``relation``, ``severity``, ``layer``, ``cosine``, ``distance``, ``noise_distance``.
        features: Pooled features of the same cases and of training images.
        layers: The layers in their order.

    Returns:
        ``relation``, ``severity``, ``layer``, ``cases``; means of ``cosine``, ``distance`` and ``noise_distance`` (over
        the cases that have one) and of ``distance`` over the same cases (``compared_distance``); ``beyond_noise``;
        ``knn_clean``, ``knn_attacked``: k-NN accuracy against training images, features in standard deviations of
        theirs; ``silhouette_clean``, ``silhouette_attacked``: of the true classes.
    """
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(list(rows))
    table[["cosine", "distance", "noise_distance"]] = table[["cosine", "distance", "noise_distance"]].astype(float)
    clean = {layer: _of(features, layer, features.of(space.CLEAN)) for layer in layers if layer in features.vectors}
    records: list[dict[str, Any]] = []
    order = {layer: place for place, layer in enumerate(layers)}
    by_level: Any = table.groupby(["relation", "severity"], sort=False)
    for (relation, severity), cases in by_level:
        attacked_places = features.of(space.FOLLOW_UP, relation, severity)
        for layer, own in sorted(cases.groupby("layer", sort=False), key=lambda pair: order[str(pair[0])]):
            compared = own[own["noise_distance"].notna()]
            moved, floor = float(compared["distance"].mean()), float(compared["noise_distance"].mean())
            attacked = _of(features, str(layer), attacked_places)
            records.append(
                {
                    "relation": relation,
                    "severity": severity,
                    "layer": layer,
                    "cases": len(own),
                    "cosine": own["cosine"].mean(),
                    "distance": own["distance"].mean(),
                    "compared_distance": moved,
                    "noise_distance": floor,
                    "beyond_noise": bool(moved > floor) if len(compared) else None,
                    "knn_clean": clean[str(layer)][0],
                    "knn_attacked": attacked[0],
                    "silhouette_clean": clean[str(layer)][1],
                    "silhouette_attacked": attacked[1],
                }
            )
    return pd.DataFrame(records)


def first_layers(table: pd.DataFrame) -> pd.DataFrame:
    """Return, by relation and severity, the first layer whose features move further than under uniform noise.

    Args:
        table: Table from :func:`layer_table`.

    Returns:
        ``relation``, ``severity``, ``first_layer`` ("" if there is none); no row for cases without compared noise.
    """
    records: list[dict[str, Any]] = []
    if table.empty:
        return pd.DataFrame()
    by_level: Any = table.groupby(["relation", "severity"], sort=False)
    for (relation, severity), rows in by_level:
        if rows["noise_distance"].notna().any():
            beyond = rows.loc[rows["beyond_noise"].astype(bool), "layer"]
            first = beyond.iloc[0] if len(beyond) else ""
            records.append({"relation": relation, "severity": severity, "first_layer": first})
    return pd.DataFrame(records)


def map_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the means of saliency's and attention's numbers by relation, severity and map."""
    if not rows:
        return pd.DataFrame()
    names = ["rank_correlation", "cosine", "lesion_before", "lesion_after"]
    table = pd.DataFrame(list(rows))
    table[names] = table[names].astype(float)
    grouped = table.groupby(["relation", "severity", "map"], sort=False)
    means = grouped[names].mean()
    means.insert(0, "cases", grouped.size())
    return means.reset_index()


def _of(features: space.Features, layer: str, places: Sequence[int]) -> tuple[float | None, float | None]:
    """Return k-NN accuracy against training images, and the silhouette, of some images in a layer."""
    training = [at for at in features.of(space.TRAINING) if features.label[at]]
    labelled = [at for at in places if features.label[at]]
    if not labelled:
        return None, None
    truth = [features.label[at] for at in labelled]
    vectors = features.matrix(layer, labelled)
    if not training:
        return None, space.silhouette(vectors, truth)
    reference, own = space.scaled(features.matrix(layer, training), vectors)
    accuracy = space.neighbours_accuracy(reference, [features.label[at] for at in training], own, truth)
    return accuracy, space.silhouette(own, truth)
