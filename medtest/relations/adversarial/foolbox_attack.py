"""Attacks of foolbox, and AutoAttack, by name: for whoever wants the same numbers as other papers.

J. Rauber, W. Brendel, M. Bethge, "Foolbox: a Python toolbox to benchmark the robustness of machine learning models",
2017. The libraries come with the extra ``attacks``. Names are those of foolbox's classes and of nothing else;
AutoAttack (Croce and Hein 2020) is ``pyautoattack``'s, for four classes or more, as its losses ask.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import PreparedSeed
from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.probes import Need, Probe
from medtest.relations.adversarial.attack import Attack, AttackBatch, AttackSettings, EpsilonLevel, SearchResult
from medtest.relations.levels import number

if TYPE_CHECKING:
    from torch import Tensor

AUTO_ATTACK = "AutoAttack"
_SCORES_ALONE = (
    *(
        "BoundaryAttack",
        "HopSkipJumpAttack",
        "GenAttack",
        "PointwiseAttack",
        "SpatialAttack",
        "SaltAndPepperNoiseAttack",
    ),
    *("InversionAttack", "BinarySearchContrastReductionAttack", "LinearSearchContrastReductionAttack"),
    *("LinearSearchBlendedUniformNoiseAttack", "GaussianBlurAttack", "DatasetAttack"),
)
_NOISE = "Noise"


class FoolboxSettings(AttackSettings[EpsilonLevel]):
    """Settings of ``foolbox_attack``.

    Attributes:
        attack: Name of a class of ``foolbox.attacks`` (``LinfPGD``, ``L2DeepFoolAttack``, ``HopSkipJumpAttack`` …), or
            ``AutoAttack``.
        options: Arguments of its constructor, by name.
        norm: The norm in which ε bounds what is saved.
    """

    attack: str = Field(default="LinfPGD", min_length=1, max_length=80, pattern=r"^[A-Za-z][A-Za-z0-9]*$")
    options: dict[str, float | int | bool | str] = {}
    norm: Literal["linf", "l2"] = "linf"


class FoolboxAttack(Attack[EpsilonLevel]):
    """Runs an attack of foolbox on the system's probe; what it gives is brought back into ε and saved as all are."""

    Settings = FoolboxSettings
    takes: ClassVar[frozenset[str]] = frozenset({"label"})

    settings: FoolboxSettings

    @property
    def needs(self) -> Need:
        """Scores, where the attack looks at answers alone; else gradients."""
        name = self.settings.attack
        return Need.SCORES if name in _SCORES_ALONE or _NOISE in name else Need.GRADIENTS

    def missing_on(self, system: str, name: str, *, size: int | None = None, typed: str = "") -> Sequence[Mistake]:
        """Return that the library is missing, or has no such attack; nothing is imported for that."""
        key, chosen = "relations.foolbox_attack", self.settings.attack
        module = "pyautoattack" if chosen == AUTO_ATTACK else "foolbox"
        if find_spec(module) is None:
            fix = "pip install 'medtest[attacks]'"
            return [Mistake(where="suite", key=key, found=f"{module} is not installed", fix=fix)]
        known = [AUTO_ATTACK, *_names()]
        if chosen in known:
            return []
        nearest = nearest_name(chosen, known)
        return [Mistake(where="suite", key=f"{key}.attack", found=chosen, allowed=", ".join(known), nearest=nearest)]

    def fingerprint(self) -> dict[str, Any]:
        """Return the library's version: another one may attack otherwise."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return {"library": version("pyautoattack" if self.settings.attack == AUTO_ATTACK else "foolbox")}
        except PackageNotFoundError:
            return {}

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """As of every attack, with its name."""
        return {**super().sample(seed, severity, rng), "attack": self.settings.attack}

    def search(self, batch: AttackBatch, probe: Probe) -> SearchResult:
        """Attack one image after the other: random numbers are each case's own, and ε too."""
        import torch

        if probe.classes is None or probe.classes.multi:
            raise MedtestError("foolbox's attacks have no loss of several labels: take pgd or strongest")
        found, queries = [], []
        devices = [torch.device(probe.device)] if probe.device.startswith("cuda") else []
        for row in range(len(batch.images)):
            one = batch.part(torch.tensor([row]))
            counted = _counted(probe)
            with torch.random.fork_rng(devices=devices), torch.enable_grad():
                seed = int(number(one.cases[0].params, "noise_seed"))
                torch.manual_seed(seed)
                state = np.random.get_state()  # noqa: NPY002 - foolbox draws from NumPy's global generator
                np.random.seed(seed % 2**32)  # noqa: NPY002
                try:
                    images = self._attacked(one, counted)
                finally:
                    np.random.set_state(state)  # noqa: NPY002
            found.append(torch.where(one.within, images.detach().clamp(0, 1), one.images))
            queries.append(counted.queries)
        return SearchResult(images=torch.cat(found), queries=queries, zero_gradient=[None] * len(queries))

    def _known(self) -> str:
        """Return the attack's name, once it is one of foolbox's: nothing else is looked up.

        Raises:
            MedtestError: It is none.
        """
        if self.settings.attack not in _names():
            raise MedtestError(f"foolbox has no attack {self.settings.attack}")
        return self.settings.attack

    def _attacked(self, one: AttackBatch, network: Any) -> Tensor:
        epsilon = float(one.epsilon[0])
        if self.settings.attack == AUTO_ATTACK:
            from pyautoattack import AutoAttack

            norm = {"linf": "Linf", "l2": "L2"}[self.settings.norm]
            seed = int(number(one.cases[0].params, "noise_seed")) % 2**32
            options = {"seed": seed, "device": str(one.images.device), **self.settings.options}
            ensemble = AutoAttack(network.eval(), norm=norm, eps=epsilon, **options)
            images: Tensor = ensemble.run_standard_evaluation(one.images, one.goal.truth, batch_size=1)[0]
            return images
        import foolbox

        model: Any = vars(foolbox)["PyTorchModel"](network.eval(), bounds=(0, 1), device=one.images.device)
        criterion: Any = one.goal.truth
        if one.goal.targeted:
            criterion = foolbox.criteria.TargetedMisclassification(one.goal.truth)
        attack: Any = vars(foolbox.attacks)[self._known()](**self.settings.options)
        _, clipped, _ = attack(model, one.images, criterion, epsilons=epsilon)
        result: Tensor = clipped
        return result


def _names() -> list[str]:
    """Return the names of foolbox's attacks as its package lists them, without importing it and torch with it."""
    found = find_spec("foolbox")
    folders = [] if found is None else list(found.submodule_search_locations or ())
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
    """Return the probe as a module, as these libraries want it, which counts what it is asked."""
    from torch import nn

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.queries = 0

        def forward(self, images: Tensor) -> Tensor:
            self.queries += len(images)
            given: Tensor = probe.logits(images)
            return given

    return Counted()
