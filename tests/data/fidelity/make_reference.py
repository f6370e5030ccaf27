"""Writes reference.json: what torch-fidelity 0.4.0 makes of arrays that are drawn from a seed.

    pip install torch-fidelity==0.4.0 --no-deps
    python tests/data/fidelity/make_reference.py

Its functions are called on whole arrays; how ours come to the same figures is in medtest/results/fidelity.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CASES = {
    # rows, rows of the reference, dimension, subset of KID, dtype
    "more rows than dimensions": (600, 500, 48, 100, "float32"),
    "fewer rows than dimensions": (40, 60, 128, 30, "float32"),
    "fewer rows than dimensions, one of both": (300, 50, 96, 50, "float64"),
    "the same distribution": (400, 400, 32, 200, "float64"),
}
SUBSETS = 20


def arrays(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features of both sets, as features of networks are: correlated and not negative."""
    first, second, dimension, _, dtype = CASES[name]
    rng = np.random.default_rng([ord(letter) for letter in name])
    mix = rng.normal(size=(dimension, dimension)) / np.sqrt(dimension)
    shift = 0.0 if name == "the same distribution" else 0.2
    rows = [np.maximum(rng.normal(size=(n, dimension)) @ mix + s, 0) for n, s in ((first, 0.3 + shift), (second, 0.3))]
    return rows[0].astype(dtype), rows[1].astype(dtype)


def references() -> dict[str, dict[str, float]]:
    """Return the figures of torch-fidelity."""
    import torch
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
    from torch_fidelity.metric_isc import isc_features_to_metric
    from torch_fidelity.metric_kid import kid_features_to_metric

    found = {}
    for name, (*_, size, _) in CASES.items():
        one, two = (torch.from_numpy(rows) for rows in arrays(name))
        statistics = [fid_features_to_statistics(rows) for rows in (one, two)]
        found[name] = {
            **fid_statistics_to_metric(*statistics, verbose=False),
            **isc_features_to_metric(4 * one),
            **kid_features_to_metric(one, two, kid_subsets=SUBSETS, kid_subset_size=size, verbose=False),
        }
    return found


if __name__ == "__main__":
    Path(__file__).with_name("reference.json").write_text(json.dumps(references(), indent=1) + "\n", encoding="utf-8")
