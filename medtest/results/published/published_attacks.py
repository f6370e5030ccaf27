"""Published figures on attacks and defences of three classifiers, to stand beside the user's own.

- ``attacks.csv``: tables 1 and 2 of M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by
  adversarial attack" (Medical Image Analysis, 2021): accuracy, area under the ROC curve and fooling rate on clean
  images, under PGD and under GAP; GAP on training images and on validation images.
- ``defense_accuracy.csv``: its table 5, accuracy by defence. All rows but ``None`` are under PGD, ε = 4/255, 4 steps.
- Tables 3 and 4 are read by :mod:`medtest.results.published.published_labels`.

Where the paper contradicts itself: AttnMel's fooling rates under PGD (74.7 and 85.5 %) are smaller than its accuracy
falls (76.7 and 87.5 points), which cannot be of the same images; CheXNet under attack is 45.5 % in table 2 and 45.0 %
in table 5. On training images the fooling rates under GAP are 100 % less the accuracy: the networks were right on all.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
PAPER = 'M. Xu et al., "Towards evaluating the robustness of deep diagnostic models by adversarial attack" (2021)'
TABLES: dict[str, int] = {"IPMI2019-AttnMel": 1, "Inception v3": 1, "CheXNet": 2}
"""The paper's networks, and the number of the table that holds their accuracy under attack."""
CLEAN = "clean"
CONTRADICTION: dict[str, str] = {
    "IPMI2019-AttnMel": (
        "The paper's fooling rates under PGD, 74.7 and 85.5 %, are smaller than its falls of accuracy, 76.7 and 87.5 "
        "points; of the same images that cannot be."
    ),
    "CheXNet": "Under PGD 4/255, 4 steps, table 2 has 45.5 % and table 5 has 45.0 %.",
}
"""Where a network's published figures do not agree with one another."""

NORMALISED: dict[str, str] = {
    "IPMI2019-AttnMel": "0.09 to 0.15",
    "Inception v3": "about 0.2",
    "CheXNet": "about 0.225",
}
"""What the paper's ε is to be multiplied with to be one of pixels: its code applies ε and α after normalisation, so
that the budget of a channel is ε times the channel's standard deviation."""


def gap_words(model: str) -> str:
    """Return how far the published ε and ours are apart, as sentences; of all networks for a name not known."""
    factor = NORMALISED.get(model)
    factors = f"\N{MULTIPLICATION SIGN} {factor}" if factor else _every_factor()
    return (
        "Not the same budget: ε here is in levels of the pixels, n of 255; the paper's code applies ε and the step "
        f"after normalisation, so that in pixels its budget is ε {factors}. At the same written ε ours is the stronger "
        "attack. Its networks and images are others too."
    )


def _every_factor() -> str:
    return ", ".join(f"\N{MULTIPLICATION SIGN} {factor} ({model})" for model, factor in NORMALISED.items())


@dataclass(frozen=True, kw_only=True)
class PublishedAttack:
    """A network under one attack.

    Attributes:
        model: Network, as the paper writes it.
        attack: ``clean``, ``PGD`` or ``GAP``.
        setting: As the paper's heads say it: ``eps=4/255 t=4``, ``Linf=11 val``; "" of clean images.
        accuracy_percent: Accuracy; of several labels the share of right decisions.
        auc: Area under the ROC curve, of several labels their mean.
        fooling_percent: Share of answers that differ from those to the clean images; None of clean images.
    """

    model: str
    attack: str
    setting: str
    accuracy_percent: float
    auc: float
    fooling_percent: float | None

    @property
    def name(self) -> str:
        """Attack and setting as people read them: ``PGD, ε = 4/255, t = 4``."""
        if self.attack == CLEAN:
            return "clean images"
        said = self.setting.replace("eps=", "ε = ").replace(" t=", ", t = ").replace("Linf=", "L∞ = ")
        return f"{self.attack}, {said.replace(' train', ', training images').replace(' val', ', validation images')}"


@dataclass(frozen=True, kw_only=True)
class Defended:
    """Accuracy of the three networks under one defence; all but ``None`` under PGD, ε = 4/255, 4 steps.

    Attributes:
        defence: ``None`` (clean images), ``Attack`` (no defence), ``Standard``, ``MPAdvT`` or ``MAAdvT``.
        accuracy_percent: By network, as the paper writes it; a network that has no such defence is left out.
    """

    defence: str
    accuracy_percent: dict[str, float]


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def attacked() -> tuple[PublishedAttack, ...]:
    """Return tables 1 and 2, in the file's order."""
    return tuple(
        PublishedAttack(
            model=row["model"],
            attack=row["attack"],
            setting=row["setting"],
            accuracy_percent=float(row["acc_percent"]),
            auc=float(row["auc"]),
            fooling_percent=float(row["fooling_rate_percent"]) if row["fooling_rate_percent"] else None,
        )
        for row in _rows("attacks.csv")
    )


@cache
def defended() -> tuple[Defended, ...]:
    """Return table 5, in the paper's order."""
    return tuple(
        Defended(
            defence=row["defense"],
            accuracy_percent={name: float(row[name]) for name in TABLES if row[name]},
        )
        for row in _rows("defense_accuracy.csv")
    )


def attacked_of(model: str) -> tuple[PublishedAttack, ...]:
    """Return what the paper has of a network under attack; nothing of a name it does not know."""
    return tuple(one for one in attacked() if one.model == model)


def under(model: str, attack: str, epsilon: float, steps: int | None = None) -> PublishedAttack | None:
    """Return the published figure of a network at a written ε, on validation images where there are two.

    Args:
        model: Network, as the paper writes it.
        attack: ``PGD`` or ``GAP``.
        epsilon: ε or L∞ as written, in 1/255.
        steps: Steps of PGD; None for GAP.
    """
    wanted = f"eps={epsilon:g}/255 t={steps}" if attack == "PGD" else f"Linf={epsilon:g} val"
    return next((one for one in attacked_of(model) if (one.attack, one.setting) == (attack, wanted)), None)
