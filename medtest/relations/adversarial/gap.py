"""Generative adversarial perturbations from a generator network trained against the system.

Poursaeed et al., "Generative Adversarial Perturbations", CVPR 2018; Xu et al., "Towards evaluating the robustness of
deep diagnostic models by adversarial attack", Medical Image Analysis 2021, section 4.2.2, equations 3 and 4. The
generator is trained once (``medtest train gap``) and then needs no gradient: one pass gives the perturbation of an
unseen image or, if universal, one perturbation for all images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from medtest.core.cases import Classes, Crafting, FollowUp, Json, Params, PreparedSeed
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files import file_sha256
from medtest.core.plugins import wrong_at
from medtest.core.probes import CraftCase, Need, Probe
from medtest.relations.adversarial.attack import Where, reach
from medtest.relations.adversarial.generators.files import GeneratorSettings, fitting, found_files, read_info
from medtest.relations.adversarial.saving import pixels_of, saved
from medtest.relations.base import CraftedRelation, CraftedSettings
from medtest.relations.levels import Level, LeveledSettings, noise_seed, number

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.relations.adversarial.generators.files import GeneratorInfo
    from medtest.relations.adversarial.generators.network import PerturbationGenerator

EACH = "each"
_QUERIES = 3
"""Queries per follow-up: the source, the follow-up before and after rounding."""


class GapLevel(Level):
    """One severity.

    Attributes:
        linf: Bound of the perturbation, L∞, in levels of 255.
    """

    linf: float = Field(gt=0.0, le=255.0)


class GapSettings(CraftedSettings, LeveledSettings[GapLevel]):
    """Settings of ``gap``.

    Attributes:
        trained_at: L∞ bound of the generator's training, whose perturbation is scaled to each level; ``each``: every
            level has its own generator, as in the paper.
        universal: One perturbation for all images.
        target: Target labels (several only for multi-label data); empty for an untargeted attack.
        where: Pixels that may change, as for the attacks; ``released`` changes all.
        variant: ``paper``, or ``released`` like the published code, see ``docs/generated-perturbations.md``.
    """

    trained_at: float | Literal["each"] = 11.0
    universal: bool = False
    target: list[str] = Field(default=[], max_length=100)
    where: Where = "field"
    variant: Literal["paper", "released"] = "paper"

    @model_validator(mode="after")
    def _check_released(self) -> Self:
        if isinstance(self.trained_at, float | int) and not 0 < self.trained_at <= 255:
            raise wrong_at("trained_at", "levels of 255, above 0, or each")
        return self

    def generator(self, severity: int) -> GeneratorSettings:
        """Return the settings of the generator for a severity."""
        linf = self.levels[severity].linf if self.trained_at == EACH else self.trained_at
        return GeneratorSettings(
            linf=float(linf), universal=self.universal, target=tuple(sorted(self.target)), variant=self.variant
        )


class GenerativePerturbation(CraftedRelation):
    """Add the perturbation of a generator trained against the system: δ = G(x) · min(1, ε / ‖G(x)‖∞).

    Equation 3, in pixels; x' = x + δ, kept within the range and rounded to 8 bits. The generator is in evaluation mode.
    """

    Settings = GapSettings
    group: ClassVar[str] = "adversarial"
    takes: ClassVar[frozenset[str]] = frozenset({"label"})
    scale_unit: ClassVar[str] = "L∞ bound in levels of 255"
    effects: ClassVar[frozenset[str]] = frozenset()

    settings: GapSettings

    @property
    def needs(self) -> Need:
        """Requirement on the system: gradients, for training the generator; the attack itself needs none."""
        return Need.GRADIENTS

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return the level; for ``released`` also the seed of its dropout.

        Raises:
            NotApplicable: ``where`` needs a lesion outline and the seed has none.
        """
        reach(seed, self.settings.where)
        generator = self.settings.generator(severity)
        linf = float(self.settings.levels[severity].linf)
        params: dict[str, Any] = {
            "epsilon": linf,
            "norm": "linf",
            "trained_at": generator.linf,
            "universal": generator.universal,
            "where": self.settings.where,
        }
        if generator.target:
            params["target"] = list(generator.target)
        if generator.variant == "released":
            params |= {"variant": generator.variant, "noise_seed": noise_seed(rng)}
        return params

    def network_passes(self, severity: int) -> int:
        """Return 3: the source, the follow-up before and after rounding."""
        return _QUERIES

    def _generators(self) -> list[GeneratorSettings]:
        """Return the distinct generator settings of all severities."""
        return list(dict.fromkeys(self.settings.generator(severity) for severity in self.severities()))

    def fingerprint_on(self, system: str) -> dict[str, Any]:
        """Return the SHA-256 of each generator of a system that the severities may use."""
        files = {settings.folder: found_files(system, settings) for settings in self._generators()}
        return {"generators": {folder: [file_sha256(path) for path in paths] for folder, paths in files.items()}}

    def named_classes(self) -> list[tuple[str, str]]:
        """Return the target."""
        return [("target", name) for name in self.settings.target]

    def missing_on(self, system: str, name: str, *, size: int | None = None, typed: str = "") -> Sequence[Mistake]:
        """Return one mistake on generators not trained yet, with the command that trains the first."""
        lacking = [settings for settings in self._generators() if not _of_size(found_files(system, settings), size)]
        if not lacking:
            return ()
        bounds = [f"{settings.linf:g}" for settings in lacking]
        others = f"; then also linf={', '.join(bounds[1:])}" if lacking[1:] else ""
        words = typed or f"suite=SUITE model={name}"
        return [
            Mistake(
                where=name,
                key="relations.gap",
                found=f"no generator trained against it with L∞ {', '.join(bounds)}{_kind(lacking[0], size)}",
                allowed="a generator written by medtest train gap, or a bundled one",
                fix=f"medtest train gap {words} {lacking[0].typed()}{others}",
            )
        ]

    def craft(self, cases: Sequence[CraftCase], probe: Probe) -> Sequence[FollowUp | Exception]:
        """Add each image's perturbation; the generator's output for an image is shared by all its levels."""
        results: list[FollowUp | Exception] = []
        fields: dict[tuple[Any, ...], Tensor] = {}
        clean: dict[int, Tensor] = {}
        with probe.attached():
            for case in cases:
                try:
                    results.append(self._crafted(case, probe, fields, clean))
                except Exception as error:  # noqa: BLE001 - foreign generators and networks may fail in any way
                    results.append(error)
        return results

    def _crafted(
        self,
        case: CraftCase,
        probe: Probe,
        fields: dict[tuple[Any, ...], Tensor],
        clean: dict[int, Tensor],
    ) -> FollowUp:
        from medtest.relations.adversarial.generators.goals import losses

        seed, epsilon = case.seed, number(case.params, "epsilon")
        settings = _settings_of(case.params)
        network, info = self._generator(probe, seed, settings)
        target = info.settings.target
        with torch.no_grad():
            image = pixels_of(seed.image, probe.device)
            key = (id(seed), settings, case.params.get("noise_seed"))
            if key not in fields:
                fields[key] = _field(network.to(probe.device), info, image, case.params)
            if id(seed) not in clean:
                clean[id(seed)] = probe.logits(image)
            within = torch.from_numpy(reach(seed, str(case.params["where"]))).to(probe.device)[None, None]
            shown = _shown(image, fields[key], epsilon, within, info)
            final = saved(shown, seed.image, epsilon)
            logits = probe.logits(torch.cat((shown, pixels_of(final, probe.device))))
            before = losses(clean[id(seed)], clean[id(seed)], info.classes, target, "away")
            after = losses(logits[1:], clean[id(seed)], info.classes, target, "away")
        crafting = Crafting(
            loss_before=0.0 - float(before[0]),
            loss_after=0.0 - float(after[0]),
            float_label=_label(logits[0], info.classes),
            queries=_QUERIES,
            reference="target" if target else "answer",
        )
        return FollowUp(image=final, params=case.params, scale=epsilon, crafting=crafting)

    def _generator(
        self, probe: Probe, seed: PreparedSeed, settings: GeneratorSettings
    ) -> tuple[PerturbationGenerator, GeneratorInfo]:
        """Return the generator of a system for a seed.

        Raises:
            MedtestError: There is no generator for images of these classes and this size.
        """
        height, width = seed.image.shape[:2]
        files = found_files(probe.digest, settings)
        classes = probe.classes
        path = fitting(files, classes, width) if classes is not None and height == width else None
        if path is None:
            sides = sorted({read_info(file).side for file in files})
            trained = f"those there are of images of side {', '.join(map(str, sides))}" if sides else "there is none"
            raise MedtestError(
                f"no generator against {probe.name} for images of {width}×{height} and these classes: {trained}"
            )
        status = path.stat()
        return _loaded(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=8)
def _loaded(path: Path, _modified: int, _size: int) -> tuple[PerturbationGenerator, GeneratorInfo]:
    from medtest.relations.adversarial.generators.files import load_generator

    network, info = load_generator(path)
    return network.requires_grad_(False), info


def _settings_of(params: Params) -> GeneratorSettings:
    fields: Mapping[str, Json] = params
    target = fields.get("target", [])
    return GeneratorSettings(
        linf=number(params, "trained_at"),
        universal=bool(fields["universal"]),
        target=tuple(map(str, target)) if isinstance(target, list) else (),
        variant=str(fields.get("variant", "paper")),
    )


def _of_size(files: Sequence[Path], size: int | None) -> bool:
    return any(size is None or read_info(path).side == size for path in files)


def _kind(settings: GeneratorSettings, size: int | None) -> str:
    words = ["universal"] if settings.universal else []
    words += [f"towards {'|'.join(settings.target)}"] if settings.target else []
    words += [f"variant {settings.variant}"] if settings.variant != "paper" else []
    words += [f"for images of side {size}"] if size is not None else []
    return f" ({', '.join(words)})" if words else ""


def _field(network: PerturbationGenerator, info: GeneratorInfo, image: Tensor, params: Params) -> Tensor:
    """Return the generator's output for an image: 1×3×S×S in [-1, 1]."""
    from medtest.relations.adversarial.generators.perturb import fixed_input, seen

    inputs = fixed_input(info.side, info.pattern).to(image) if info.settings.universal else seen(image)
    if info.settings.variant != "released":
        drawn: Tensor = network.eval()(inputs)
        return drawn
    # The published code never leaves training mode: dropout is on and normalisation uses the batch's statistics.
    buffers = {name: value.clone() for name, value in network.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(number(params, "noise_seed")))
        try:
            field: Tensor = network.train()(inputs)
        finally:
            network.eval()
            for name, value in network.named_buffers():
                value.copy_(buffers[name])
    return field


def _shown(image: Tensor, field: Tensor, epsilon: float, within: Tensor | None, info: GeneratorInfo) -> Tensor:
    from medtest.relations.adversarial.generators.perturb import perturbed, released

    if info.settings.variant == "released":
        return released(image, field, epsilon / 255.0, image.new_tensor(info.mean), image.new_tensor(info.std))
    return perturbed(image, field, epsilon / 255.0, within)


def _label(logits: Tensor, classes: Classes) -> str:
    from medtest.relations.adversarial.generators.goals import decisions

    flags = decisions(logits[None], multi=classes.multi)[0].tolist()
    return "|".join(name for name, flag in zip(classes.names, flags, strict=True) if flag)
