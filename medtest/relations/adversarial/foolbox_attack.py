"""Attacks of foolbox, and AutoAttack, by name, for comparison with published numbers.

J. Rauber, W. Brendel, M. Bethge, "Foolbox: a Python toolbox to benchmark the robustness of machine learning models",
2017. The libraries come with the extra ``attacks``. Only names of foolbox's classes are accepted; AutoAttack (Croce and
Hein 2020) is ``pyautoattack``'s and needs four classes or more, as its losses require.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import PreparedSeed
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.probes import Need, Probe
from medtest.relations.adversarial.attack import Attack, AttackBatch, AttackSettings, EpsilonLevel, SearchResult
from medtest.relations.levels import number

if TYPE_CHECKING:
    from torch import Tensor

AUTO_ATTACK = "AutoAttack"
_BY_SCORES = re.compile(
    "Noise|(Boundary|HopSkipJump|Gen|Pointwise|Spatial|Inversion|SearchContrastReduction|GaussianBlur|Dataset)Attack$"
)
"""Names of foolbox's attacks that need no gradients."""


class FoolboxSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``foolbox_attack``.

    Attributes:
        attack: Name of a class of ``foolbox.attacks`` (``LinfPGD``, ``L2DeepFoolAttack``, ``HopSkipJumpAttack`` …), or
            ``AutoAttack``.
        options: Arguments of its constructor, by name.
        norm: Norm of the ε ball for saved images.
    """

    attack: str = Field(default="LinfPGD", min_length=1, max_length=80, pattern=r"^[A-Za-z][A-Za-z0-9]*$")
    options: dict[str, float | int | bool | str] = {}
    norm: Literal["linf", "l2"] = "linf"


class FoolboxAttack(Attack[EpsilonLevel]):
    """Run an attack of foolbox on the system's probe; results are projected into ε and saved like others."""

    Settings = FoolboxSettings
    takes: ClassVar[frozenset[str]] = frozenset({"label"})

    settings: FoolboxSettings

    @property
    def needs(self) -> Need:
        """Requirement on the system: scores for decision-based attacks, else gradients."""
        return Need.SCORES if _BY_SCORES.search(self.settings.attack) else Need.GRADIENTS

    def missing_on(self, system: str, name: str, *, size: int | None = None, typed: str = "") -> Sequence[Mistake]:
        """Return a mistake if the library is missing or lacks the attack, without importing it."""
        key, chosen = "relations.foolbox_attack", self.settings.attack
        module = "pyautoattack" if chosen == AUTO_ATTACK else "foolbox"
        if find_spec(module) is None:
            fix = "pip install 'medtest[attacks]'"
            return [Mistake(where="suite", key=key, found=f"{module} is not installed", fix=fix)]
        names = [AUTO_ATTACK, *_names()]
        if chosen in names:
            return []
        nearest = nearest_name(chosen, names)
        return [Mistake(where="suite", key=f"{key}.attack", found=chosen, allowed=", ".join(names), nearest=nearest)]

    def fingerprint(self) -> dict[str, Any]:
        """Return the library's version, since versions may attack differently."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return {"library": version("pyautoattack" if self.settings.attack == AUTO_ATTACK else "foolbox")}
        except PackageNotFoundError:
            return {}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the parameters of every attack plus the attack's name."""
        return {**super().sample(seed, severity, rng), "attack": self.settings.attack}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Attack images one by one, each with its own random seed and ε."""
        from medtest.relations.adversarial.strongest.draws import seeded

        if probe.classes is None or probe.classes.multi:
            raise MedtestError("foolbox's attacks have no loss of several labels: take pgd or strongest")
        attacked, queries = [], []
        for row in range(len(batch.images)):
            single = batch.part(torch.tensor([row]))
            counted = _counted(probe)
            seed = int(number(single.cases[0].params, "noise_seed"))
            with seeded(seed, probe.device), torch.enable_grad():
                images = self._attacked(single, counted)
            attacked.append(torch.where(single.within, images.detach().clamp(0, 1), single.images))
            queries.append(counted.queries)
        return SearchResult(images=torch.cat(attacked), queries=queries)

    def _attacked(self, batch: AttackBatch, network: Any) -> Tensor:
        epsilon = float(batch.epsilon[0])
        if self.settings.attack == AUTO_ATTACK:
            from pyautoattack import AutoAttack

            norm = {"linf": "Linf", "l2": "L2"}[self.settings.norm]
            seed = int(number(batch.cases[0].params, "noise_seed")) % 2**32
            options = {"seed": seed, "device": str(batch.images.device), **self.settings.options}
            ensemble = AutoAttack(network.eval(), norm=norm, eps=epsilon, **options)
            images: Tensor = ensemble.run_standard_evaluation(batch.images, batch.goal.truth, batch_size=1)[0]
            return images
        import foolbox

        model: Any = vars(foolbox)["PyTorchModel"](network.eval(), bounds=(0, 1), device=batch.images.device)
        criterion: Any = batch.goal.truth
        if batch.goal.targeted:
            criterion = foolbox.criteria.TargetedMisclassification(batch.goal.truth)
        if self.settings.attack not in _names():
            raise MedtestError(f"foolbox has no attack {self.settings.attack}")
        attack: Any = vars(foolbox.attacks)[self.settings.attack](**self.settings.options)
        _, clipped, _ = attack(model, batch.images, criterion, epsilons=epsilon)
        result: Tensor = clipped
        return result


def _names() -> list[str]:
    """Return the names of foolbox's attacks from its package source, without importing foolbox and torch."""
    spec = find_spec("foolbox")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    names: list[str] = []
    for folder in folders:
        tree = ast.parse((Path(folder) / "attacks" / "__init__.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.level and node.module != "base":
                names += [alias.name for alias in node.names]
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.append(node.targets[0].id)
    return sorted(dict.fromkeys(name for name in names if not name.startswith("_")))


def _counted(probe: Probe) -> Any:
    """Return the probe as a torch module, as these libraries require, that counts queries."""
    from torch import nn

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.queries = 0

        def forward(self, images: Tensor) -> Tensor:
            self.queries += len(images)
            logits: Tensor = probe.logits(images)
            return logits

    return Counted()
