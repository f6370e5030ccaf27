"""The strongest of several attacks, image by image, judged on what is saved.

After AutoAttack (Croce and Hein 2020), which cannot be taken as it is: its DLR loss is undefined under three classes,
its targeted form under four, and it knows neither several labels nor masks. Here: what the suite's other attacks and
uniform noise of no larger ε have made of the image, Auto-PGD on cross-entropy and on the margin (of masks also on
Dice), each with restarts, Auto-PGD with gradients that pass rounding, a surrogate distilled from scores where gradients
are zero or cannot be had, and Square. Of all their images, rounded to 8 bits, the one that the system answers worst is
taken. An image of which all is reached that can be is not attacked further.

Where answers do not repeat, gradients and scores are averaged over draws, and images are judged over more of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medtest.core.cases import PreparedSeed
from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import Attack, AttackBatch, EpsilonLevel, SearchResult, reach
from medtest.relations.adversarial.saving import pixels_of, within_budget
from medtest.relations.adversarial.strongest.settings import StrongestSettings

if TYPE_CHECKING:
    from medtest.relations.adversarial.strongest.worst import Worst


class Strongest(Attack[EpsilonLevel]):
    """The worst of all attacks beside it, of Auto-PGD on two losses and of Square, for each image."""

    Settings = StrongestSettings
    gathers: ClassVar[bool] = True

    settings: StrongestSettings

    def network_passes(self, severity: int) -> int:
        """Return those of Auto-PGD and Square, and what is asked before and after."""
        settings = self.settings
        return 2 * settings.restarts * (settings.steps + 2) + settings.tries + 5

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """As of every attack, with how long each of its parts searches."""
        settings = self.settings
        lengths = {"steps": settings.steps, "restarts": settings.restarts, "tries": settings.tries}
        return {**super().sample(seed, severity, rng), **lengths}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Attack in turn whatever is not wholly reached, and keep the worst of each image."""
        from medtest.relations.adversarial.strongest.parts import parts_of
        from medtest.relations.adversarial.strongest.worst import Worst

        worst = Worst(batch, probe, norm=self.norm, draws=2 * self.settings.draws if batch.random else 1)
        self._offer_beside(batch, worst)
        for part in parts_of(self.settings, batch, probe, worst):
            worst.attack(part)
        return worst.result()

    def _offer_beside(self, batch: AttackBatch, worst: Worst) -> None:
        """Judge what other attacks made of the images, as far as it lies within the budget and the reach."""
        import torch

        offered: list[tuple[int, str, Any]] = []
        for row, case in enumerate(batch.cases):
            epsilon, source = float(batch.epsilon[row]) * 255, case.seed.image
            within = reach(case.seed, str(case.params["where"]))
            offered += [
                (row, name, image)
                for name, image in case.beside
                if within_budget(image, source, epsilon, norm=self.norm) and not (image != source)[~within].any()
            ]
        for name in dict.fromkeys(name for _, name, _ in offered):
            by_row: dict[int, list[Any]] = {}
            for row, by, image in offered:
                if by == name:
                    by_row.setdefault(row, []).append(image)
            for number in range(max(map(len, by_row.values()))):
                chosen = {row: images[number] for row, images in by_row.items() if len(images) > number}
                pixels = torch.cat([pixels_of(image, str(batch.images.device)) for image in chosen.values()])
                worst.offer(torch.tensor(list(chosen), device=batch.images.device), pixels, name)
