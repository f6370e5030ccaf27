"""Measures of feature spaces, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors

from medtest.core.errors import UserMistakes
from medtest.inside import space
from medtest.inside.tables import first_layers, layer_table


def _clouds(rng, n, apart):
    labels = ["a", "b"] * (n // 2)
    return np.array([rng.normal(size=3) + (apart if label == "b" else 0) for label in labels]), labels


def test_knn_accuracy_matches_a_count_by_hand():
    rng = np.random.default_rng(4)
    training, labels = _clouds(rng, 30, 1.5)
    queries, truth = _clouds(rng, 20, 1.5)
    near = NearestNeighbors(n_neighbors=5).fit(training).kneighbors(queries, return_distance=False)
    right = [
        max("ab", key=[labels[n] for n in row].count) == true_label for row, true_label in zip(near, truth, strict=True)
    ]
    accuracy = space.neighbours_accuracy(training, labels, queries, truth)
    assert accuracy == pytest.approx(np.mean(right))
    assert 0.5 < accuracy < 1
    assert space.neighbours_accuracy(training, ["a"] * 30, queries, truth) is None


def test_silhouette_matches_sklearn_and_is_empty_for_one_class():
    features, labels = _clouds(np.random.default_rng(5), 20, 2.0)
    assert space.silhouette(features, labels) == pytest.approx(silhouette_score(features, labels))
    assert space.silhouette(features, ["a"] * 20) is None
    assert space.silhouette(features[:2], ["a", "b"]) is None


def test_features_are_in_standard_deviations_of_training():
    reference = np.array([[0.0, 5.0], [2.0, 5.0]])
    own, other = space.scaled(reference, np.array([[3.0, 7.0]]))
    np.testing.assert_allclose(own, [[-1, 0], [1, 0]])
    np.testing.assert_allclose(other, [[2, 0]])


def test_embedding_separates_clouds_and_is_reproducible():
    features, labels = _clouds(np.random.default_rng(6), 24, 30.0)
    placed = space.embedded(features, "tsne", 3)
    assert placed.shape == (24, 2)
    np.testing.assert_array_equal(placed, space.embedded(features, "tsne", 3))
    assert silhouette_score(placed, labels) > 0.3
    assert space.embedded(features[:4], "tsne", 3) is None
    assert space.embedded(features, "none", 3) is None
    with pytest.raises(UserMistakes):
        space.embedded(features, "pca", 3)


def test_a_missing_extra_is_named(monkeypatch):
    from medtest.inside import saliency

    monkeypatch.setattr(saliency, "find_spec", lambda name: None)
    with pytest.raises(UserMistakes, match=r"medtest\[umap\]"):
        space.embedded(np.zeros((9, 2)), "umap", 0)


def test_the_first_layer_beyond_noise_is_found_in_network_order():
    rows = [
        {"relation": "pgd", "severity": 1, "layer": layer, "cosine": 0.5, "distance": moved, "noise_distance": 2.0}
        for layer, moved in (("three", 9.0), ("two", 3.0), ("one", 1.0))
    ]
    features = space.Features()
    features.add(dict.fromkeys(("one", "two", "three"), np.zeros(2, np.float32)), role=space.CLEAN, label="", name="")
    assert first_layers(layer_table(rows, features, ["one", "two", "three"]))["first_layer"].tolist() == ["two"]
    assert first_layers(layer_table(rows[2:], features, ["one"]))["first_layer"].tolist() == [""]


def test_tables_summarise_layers_by_relation_and_severity():
    features = space.Features()
    rng = np.random.default_rng(1)
    for role, relation, shift in (("training", "", 0.0), ("clean", "", 0.0), ("follow-up", "pgd", 9.0)):
        vectors, labels = _clouds(rng, 12, 8.0)
        for vector, label in zip(vectors, labels, strict=True):
            moved = vector + (shift if label == "a" else -shift)
            by_layer = {"deep": moved.astype(np.float32), "flat": vector.astype(np.float32)}
            features.add(by_layer, role=role, label=label, name="x", relation=relation, severity=int(bool(relation)))
    rows = [
        {"relation": "pgd", "severity": 1, "layer": layer, "cosine": 0.5, "distance": d, "noise_distance": 1.0}
        for layer, distances in (("flat", (0.5, 0.7)), ("deep", (2.0, 3.0)))
        for d in distances
    ]
    table = layer_table(rows, features, ["flat", "deep"]).set_index("layer")
    assert table.loc["deep", "distance"] == 2.5
    assert list(table["beyond_noise"]) == [False, True]
    assert table.loc["deep", "knn_clean"] == 1
    assert table.loc["deep", "knn_attacked"] < 0.2
    assert table.loc["flat", "knn_attacked"] == 1
    first = first_layers(table.reset_index())
    assert isinstance(first, pd.DataFrame)
    assert first.to_dict("records") == [{"relation": "pgd", "severity": 1, "first_layer": "deep"}]
