"""The strongest of several attacks, image by image, judged on saved images.

Modelled on AutoAttack (Croce and Hein 2020), which does not apply directly: its DLR loss is undefined for fewer
than three classes, its targeted form for fewer than four, and it supports neither several labels nor masks. The
candidates here are results of the suite's other attacks and of uniform noise with no larger ε, Auto-PGD on
cross-entropy and on the margin (for masks also on Dice), each with restarts, Auto-PGD with gradients passed through
rounding, a surrogate distilled from scores if gradients are zero or missing, and Square. Of all these images, rounded
to 8 bits, the one with the worst answer is kept. An image whose goal is fully reached is not attacked further.

If answers do not repeat, gradients and scores are averaged over draws, and images are judged over more of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medtest.core.cases import PreparedSeed
from medtest.core.deferred import torch
from medtest.core.probes import Probe
from medtest.relations.adversarial.attack import Attack, AttackBatch, EpsilonLevel, SearchResult, reach
from medtest.relations.adversarial.saving import pixels_of, within_budget
from medtest.relations.adversarial.strongest.settings import StrongestSettings

if TYPE_CHECKING:
    from medtest.relations.adversarial.strongest.worst import Worst


class Strongest(Attack[EpsilonLevel]):
    """Keep the worst result of the suite's other attacks, Auto-PGD on two losses, and Square for each image."""

    Settings = StrongestSettings
    gathers: ClassVar[bool] = True

    settings: StrongestSettings

    def network_passes(self, severity: int) -> int:
        """Return the number of passes of Auto-PGD and Square, and of checks before and after."""
        settings = self.settings
        return 2 * settings.restarts * (settings.steps + 2) + settings.tries + 5

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of every attack plus the length of each part's search."""
        settings = self.settings
        lengths = {"steps": settings.steps, "restarts": settings.restarts, "tries": settings.tries}
        return {**super().sample(seed, severity, rng), **lengths}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Run the attacks in turn on images not fully reached, keeping the worst result of each."""
        from medtest.relations.adversarial.strongest.parts import parts_of
        from medtest.relations.adversarial.strongest.worst import Worst

        worst = Worst(batch, probe, norm=self.norm, draws=2 * self.settings.draws if batch.random else 1)
        self._offer_other_results(batch, worst)
        for part in parts_of(self.settings, batch, probe, worst):
            worst.attack(part)
        return worst.result()

    def _offer_other_results(self, batch: AttackBatch, worst: Worst) -> None:
        """Judge other attacks' results that are within the budget and the changeable pixels."""
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
            for row, attack, image in offered:
                if attack == name:
                    by_row.setdefault(row, []).append(image)
            for number in range(max(map(len, by_row.values()))):
                chosen = {row: images[number] for row, images in by_row.items() if len(images) > number}
                pixels = torch.cat([pixels_of(image, str(batch.images.device)) for image in chosen.values()])
                worst.offer(torch.tensor(list(chosen), device=batch.images.device), pixels, name)
