"""Published figures on attacks and defences of three classifiers, for comparison with the user's.

- ``attacks.csv``: tables 1 and 2 of M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by
  adversarial attack" (Medical Image Analysis, 2021): accuracy, area under the ROC curve and fooling rate on clean
  images, under PGD and under GAP; GAP on training images and on validation images.
- ``defense_accuracy.csv``: its table 5, accuracy by defence. All rows but ``None`` are under PGD, ε = 4/255, 4 steps.
- Tables 3 and 4 are read by :mod:`medtest.results.published.published_labels`.

Contradictions in the paper: AttnMel's fooling rates under PGD (74.7 and 85.5 %) are smaller than its accuracy falls
(76.7 and 87.5 points), which is impossible on the same images; CheXNet under attack is 45.5 % in table 2 and 45.0 % in
table 5. On training images the fooling rates under GAP are 100 % minus the accuracy: the networks were right on all.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

from medtest.results.published.rows import published_rows

PAPER = 'M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack" (2021)'
TABLES: dict[str, int] = {"IPMI2019-AttnMel": 1, "Inception v3": 1, "CheXNet": 2}
"""The paper's networks, each with the number of the table of its accuracy under attack."""
CLEAN = "clean"
CONTRADICTION: dict[str, str] = {
    "IPMI2019-AttnMel": (
        "The paper's fooling rates under PGD, 74.7 and 85.5 %, are smaller than its falls of accuracy, 76.7 and 87.5 "
        "points; this is impossible on the same images."
    ),
    "CheXNet": "Under PGD 4/255, 4 steps, table 2 has 45.5 % and table 5 has 45.0 %.",
}
"""Contradictions between a network's published figures."""

NORMALISED: dict[str, str] = {
    "IPMI2019-AttnMel": "0.09 to 0.15",
    "Inception v3": "about 0.2",
    "CheXNet": "about 0.225",
}
"""Factor that converts the paper's ε to pixels.

The paper's code applies ε and α after normalisation, so that the budget of a channel is ε times its standard deviation.
"""


def gap_words(model: str) -> str:
    """Return sentences on the gap between the published ε and ours; on all networks if the name is unknown."""
    factor = NORMALISED.get(model)
    factors = f"\N{MULTIPLICATION SIGN} {factor}" if factor else _every_factor()
    return (
        "Not the same budget: ε here is in levels of the pixels, n of 255; the paper's code applies ε and the step "
        f"after normalisation, so that in pixels its budget is ε {factors}. At the same written ε ours is the stronger "
        "attack. Its networks and images are others too."
    )


def _every_factor() -> str:
    return ", ".join(f"\N{MULTIPLICATION SIGN} {factor} ({model})" for model, factor in NORMALISED.items())


@cache
def attacked() -> tuple[SimpleNamespace, ...]:
    """Return tables 1 and 2, in the file's order.

    Each row has the ``model`` as the paper writes it, the ``attack`` (``clean``, ``PGD`` or ``GAP``) and its
    ``setting`` as in the paper's headers (``eps=4/255 t=4``, ``Linf=11 val``, "" for clean images),
    ``accuracy_percent`` (for several labels the share of right decisions), ``auc`` (for several labels the mean) and
    ``fooling_percent``, the share of answers that differ from those to the clean images, None for clean images.
    """
    names = {"acc_percent": "accuracy_percent", "fooling_rate_percent": "fooling_percent"}
    return tuple(published_rows("attacks.csv", **names))


def attack_words(row: SimpleNamespace) -> str:
    """Return the display name of a row's attack and setting: ``PGD, ε = 4/255, t = 4``."""
    if row.attack == CLEAN:
        return "clean images"
    setting = row.setting.replace("eps=", "ε = ").replace(" t=", ", t = ").replace("Linf=", "L∞ = ")
    return f"{row.attack}, {setting.replace(' train', ', training images').replace(' val', ', validation images')}"


@cache
def defended() -> dict[str, dict[str, float]]:
    """Return table 5: for each defence the accuracy of each network in percent, without networks that lack it.

    Defences are ``None`` (clean images), ``Attack`` (no defence), ``Standard``, ``MPAdvT`` and ``MAAdvT``, in the
    paper's order; all but ``None`` are under PGD, ε = 4/255, 4 steps.
    """
    rows = [vars(row) for row in published_rows("defense_accuracy.csv")]
    return {row["defense"]: {name: row[name] for name in TABLES if row[name] is not None} for row in rows}


def attacked_of(model: str) -> tuple[SimpleNamespace, ...]:
    """Return the paper's figures for a network under attack; empty for an unknown name."""
    return tuple(row for row in attacked() if row.model == model)


def under(model: str, attack: str, epsilon: float, steps: int | None = None) -> SimpleNamespace | None:
    """Return the published figure of a network at a nominal ε; if there are two, the one on validation images.

    Args:
        model: Network, as the paper writes it.
        attack: ``PGD`` or ``GAP``.
        epsilon: ε or L∞ as written, in 1/255.
        steps: Steps of PGD; None for GAP.
    """
    setting = f"eps={epsilon:g}/255 t={steps}" if attack == "PGD" else f"Linf={epsilon:g} val"
    return next((row for row in attacked_of(model) if (row.attack, row.setting) == (attack, setting)), None)
