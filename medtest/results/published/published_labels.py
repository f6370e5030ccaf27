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

from functools import cache
from types import SimpleNamespace

from medtest.results.published.reference import ARTEFACTS
from medtest.results.published.retraining import ORIGINAL, WITHOUT
from medtest.results.published.rows import published_rows

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


@cache
def scores() -> tuple[SimpleNamespace, ...]:
    """Return every published row of the slides, in the file's order.

    Each has the ``model`` as the slides write it, the ``relation`` that corresponds to the artefact (or ``original``,
    ``average_without_original``), and ``accuracy``, Cohen's ``kappa`` and ``f1``, in [0, 1] and rounded to three
    decimals by its authors.
    """
    rows = published_rows("medtest_wce_classification.csv", cohen_kappa="kappa")
    for row in rows:
        row.relation = _ROWS[row.artifact]
    return tuple(rows)


def scores_of(model: str, relation: str) -> SimpleNamespace | None:
    """Return the figures in the slides for a network and a row, or None.

    Args:
        model: Network, as the slides write it.
        relation: Name of the relation's part, ``original`` or ``average_without_original``.
    """
    return next((row for row in scores() if (row.model, row.relation) == (model, relation)), None)


@cache
def flips() -> tuple[SimpleNamespace, ...]:
    """Return the paper's table 3.

    Each row has the ``model``, its flip probability in ``percent``, and ``defended_percent``, that after MPAdvT.
    """
    names = {"flip_probability_percent": "percent", "flip_probability_after_mpadvt_percent": "defended_percent"}
    return tuple(published_rows("robust_benchmark.csv", **names))


@cache
def relative() -> tuple[SimpleNamespace, ...]:
    """Return the paper's table 4, the relative flip probability on the melanoma sequences (AttnMel is 1).

    Each row has the ``model``, ``accuracy_percent`` on the originals, ``adversarial_percent`` under PGD, ε = 4/255, 4
    steps, and ``rfp``, its flip probability divided by AttnMel's.
    """
    names = {"original_accuracy_percent": "accuracy_percent", "adversarial_accuracy_percent": "adversarial_percent"}
    return tuple(published_rows("relative_flip_probability_melanoma.csv", **names))
