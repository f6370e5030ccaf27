"""Records with a planted failing slice, from a random model; numbers only, no images."""

from __future__ import annotations

import numpy as np
import pandas as pd

CENTRES = {"a": 0.6, "b": 0.2, "c": 0.2}
RELATIONS = 6
PLANTED = "polyp_area in the lowest quartile, centre a"
"""15 % of the clusters: a quarter of them at the centre of 60 %."""


def slice_records(
    random: int,
    *,
    planted: bool,
    clusters: int = 400,
    per_cluster: int = 6,
    correlation: float = 0.2,
    rates: tuple[float, float] = (0.2, 0.6),
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a frame of follow-ups, and a mask of those in the slice.

    Args:
        random: Seed of the random model.
        planted: Whether the slice fails more often.
        clusters: Number of patients.
        per_cluster: Cases of each, one relation after another.
        correlation: Correlation of two outcomes of one patient, whose own rate has a beta distribution.
        rates: Rates outside and inside the slice.
    """
    rng = np.random.default_rng([random, planted])
    area, centre = rng.random(clusters), rng.choice([*CENTRES], clusters, p=[*CENTRES.values()])
    inside = (area <= np.quantile(area, 0.25)) & (centre == "a")
    mean = np.where(inside & planted, rates[1], rates[0])
    own = rng.beta(mean * (1 / correlation - 1), (1 - mean) * (1 / correlation - 1)) if correlation else mean
    of = np.repeat(np.arange(clusters), per_cluster)
    relation = np.tile(np.arange(per_cluster) % RELATIONS, clusters)
    failed = rng.random(len(of)) < own[of]
    patient = pd.DataFrame(
        {
            "factor_polyp_area": area,
            "factor_brightness": rng.normal(100, 20, clusters),
            "factor_contrast": rng.normal(40, 8, clusters),
            "factor_polyp_distance": rng.random(clusters),
            "stratum_centre": centre,
            "stratum_sex": rng.choice(["f", "m"], clusters),
            "stratum_age": rng.integers(20, 90, clusters).astype(str),
        }
    )
    cases = pd.DataFrame(
        {
            "system": "model",
            "dataset": "polyps",
            "seed_id": [f"seed{number:04d}" for number in of],
            "cluster": [f"patient{number:04d}" for number in of],
            "item": "",
            "relation": [f"relation{number}" for number in relation],
            "group": "motion",
            "severity": 1,
            "frame": 0,
            "repeat": np.tile(np.arange(per_cluster), clusters),
            "verdict": np.where(failed, "FAIL", "PASS"),
            "reason_code": "",
            "reason": "",
            "dice": np.where(failed, 0.3, 0.85) + rng.normal(0, 0.01, len(of)),
            "source_dice": 0.9,
        }
    )
    return pd.concat([cases, patient.iloc[of].reset_index(drop=True)], axis=1), inside[of]
