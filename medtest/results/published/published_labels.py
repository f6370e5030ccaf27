"""Published figures of classifiers, for comparison with the user's.

- ``medtest_wce_classification.csv``: MedTest slides, RQ1 (capsule endoscopy): accuracy, Cohen's κ and F1 of AGDN and
  DSI-Net on 600 frames of CAD-CAP and KID, on the originals and on eight artefacts. Its Average rows exclude the
      original. The slides state that accuracy falls by at most 0.229 and 0.144; their own table gives 0.361 (AGDN,
      0.893 to
  0.532) and 0.212 (DSI-Net, 0.940 to 0.728), both under white balance.
- ``robust_benchmark.csv`` and ``relative_flip_probability_melanoma.csv``: tables 3 and 4 of M. Xu et al., "Towards
  evaluating the robustness of deep diagnostic models by adversarial attack" (Medical Image Analysis, 2021). The 38.09 %
      of CheXNet is its figure in table 3, but in the text that of the type Scale only. Its code does not divide
  the flips of several labels by n - 1 (rule ``released``), nor does it average over types.

``medtest_retraining_classification.csv`` is read by :mod:`medtest.results.published.retraining`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medtest.results.published.reference import ARTEFACTS
from medtest.results.published.retraining import ORIGINAL, WITHOUT

FOLDER = Path(__file__).parent
SLIDES = "MedTest slides, RQ1 (classification of capsule endoscopy, 600 frames of CAD-CAP and KID)"
PAPER = 'M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack" (2021)'
STATED_FALLS: dict[str, float] = {"AGDN": 0.229, "DSI-Net": 0.144}
"""Maximum decreases of accuracy stated in the slides; the module's docstring gives those in their table."""

FAMILIES: dict[str, str] = {"agdn": "AGDN", "dsinet": "DSI-Net"}
"""``model=`` names with their names in the slides."""
BENCHMARKED: dict[str, str] = {
    "attnmel": "IPMI2019-AttnMel",
    "inceptionv3_dr": "Inception v3",
    "chexnet": "CheXNet",
}
"""``model=`` names with their names in the paper."""

_ROWS = {**ARTEFACTS, "Original": ORIGINAL, "Average": WITHOUT}


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Published scores of a classifier on one artefact.

    Attributes:
        model: Network, as the slides write it.
        relation: Relation that corresponds to the artefact; ``original`` or ``average_without_original``.
        accuracy: In [0, 1], rounded to three decimals by its authors, as are the following.
        kappa: Cohen's κ.
        f1: F1.
    """

    model: str
    relation: str
    accuracy: float
    kappa: float
    f1: float


@dataclass(frozen=True, kw_only=True)
class Flips:
    """Published flip probability of a classifier over the Robust-Benchmark.

    Attributes:
        model: Network, as the paper writes it.
        percent: FP in percent (table 3).
        defended_percent: FP after the paper's adversarial training MPAdvT.
    """

    model: str
    percent: float
    defended_percent: float


@dataclass(frozen=True, kw_only=True)
class Relative:
    """Published relative flip probability on the melanoma sequences (table 4; AttnMel is 1).

    Attributes:
        model: Network, as the paper writes it.
        accuracy_percent: Accuracy on the originals.
        adversarial_percent: Accuracy under PGD, ε = 4/255, 4 steps.
        rfp: FP divided by AttnMel's.
    """

    model: str
    accuracy_percent: float
    adversarial_percent: float
    rfp: float


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def scores() -> tuple[Scores, ...]:
    """Return every published row of the slides, in the file's order."""
    return tuple(
        Scores(
            model=row["model"],
            relation=_ROWS[row["artifact"]],
            accuracy=float(row["accuracy"]),
            kappa=float(row["cohen_kappa"]),
            f1=float(row["f1"]),
        )
        for row in _rows("medtest_wce_classification.csv")
    )


def scores_of(model: str, relation: str) -> Scores | None:
    """Return the figures in the slides for a network and a row, or None.

    Args:
        model: Network, as the slides write it.
        relation: Name of the relation's part, ``original`` or ``average_without_original``.
    """
    return next((row for row in scores() if (row.model, row.relation) == (model, relation)), None)


@cache
def flips() -> tuple[Flips, ...]:
    """Return the paper's table 3."""
    return tuple(
        Flips(
            model=row["model"],
            percent=float(row["flip_probability_percent"]),
            defended_percent=float(row["flip_probability_after_mpadvt_percent"]),
        )
        for row in _rows("robust_benchmark.csv")
    )


@cache
def relative() -> tuple[Relative, ...]:
    """Return the paper's table 4."""
    return tuple(
        Relative(
            model=row["model"],
            accuracy_percent=float(row["original_accuracy_percent"]),
            adversarial_percent=float(row["adversarial_accuracy_percent"]),
            rfp=float(row["rfp"]),
        )
        for row in _rows("relative_flip_probability_melanoma.csv")
    )
