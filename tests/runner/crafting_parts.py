"""Parts for tests of crafting: a small torch network that classifies shades, and a relation that attacks it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from label_parts import LEVELS, SHADES, label_suite
from runner_parts import plan_of
from torch import Tensor, nn

from medtest.core.cases import Crafting, FollowUp, Json, PreparedSeed
from medtest.core.errors import BadOutput
from medtest.core.probes import CraftCase, Need, Probe
from medtest.relations.base import CraftedRelation, CraftedSettings
from medtest.suite.model import Privacy, Suite
from medtest.systems.base import RawAnswer, SystemSettings
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.pytorch.torch_system import TorchSystem


class ShadeNet(nn.Module):
    """Logits of three shades: minus the distance of a weighted mean level to each."""

    def __init__(self, seed: int, fault: str, sign: str) -> None:
        super().__init__()
        gain = 1 + 2 * torch.randn(3, 48, 48, generator=torch.Generator().manual_seed(seed))
        self.gain = nn.Parameter(gain - gain.mean() + 1)
        self.fault, self.sign = fault, sign

    def forward(self, pixels: Tensor) -> Tensor:
        """Return B×3 logits."""
        attacked = pixels.requires_grad
        if self.fault == "hang" and attacked and not Path(self.sign).exists():
            Path(self.sign).touch()
            time.sleep(60)
        if self.fault == "crash" and attacked:
            import os

            os._exit(3)
        level = (pixels * self.gain).mean(dim=(1, 2, 3))
        logits = -10 * (level[:, None] - torch.tensor(LEVELS) / 255).abs()
        return logits * float("nan") if self.fault == "nan" and attacked else logits


class ShadeNetSettings(SystemSettings):
    """Choice of the network, and its fault while it is attacked: hang, crash, nan."""

    net: int = 0
    fault: str = ""
    sign: str = ""


class NetSystem(TorchSystem):
    """A classifier of shades that has gradients."""

    Settings = ShadeNetSettings
    tasks: ClassVar[tuple[str, ...]] = ("label",)
    classes = SHADES
    answer_form = "logits"

    def own_name(self) -> str:
        return f"net-{self.settings.net}"

    def fingerprint(self) -> dict[str, Json]:
        return {"net": self.settings.net}

    def load(self) -> nn.Module:
        return ShadeNet(self.settings.net, self.settings.fault, self.settings.sign)

    @property
    def input_kind(self) -> InputKind:
        return replace(InputKind(), mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))

    def inputs(self, images: Sequence[Any]) -> Tensor:
        return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255

    def scores(self, outputs: Any) -> Tensor:
        return outputs

    def answers(self, outputs: Any, images: Sequence[Any]) -> Sequence[RawAnswer]:
        return list(outputs.double().numpy())


class LocalNet(NetSystem):
    """The same network in the calling process, which is faster to start."""

    in_process = True


class PushSettings(CraftedSettings):
    """ε in levels by severity."""

    levels: dict[int, float] = {1: 1.0, 2: 2.0, 3: 4.0, 4: 8.0, 5: 16.0}
    needing: str = "gradients"


class Push(CraftedRelation):
    """Pushes every pixel along the sign of a gradient, from a noisy start."""

    Settings = PushSettings
    group = "adversarial"
    takes = frozenset({"label"})

    @property
    def needs(self) -> Need:
        return Need(self.settings.needing)

    def network_passes(self, severity: int) -> int:
        return 2

    def sample(self, seed: PreparedSeed, severity: int, rng: np.random.Generator) -> dict[str, Any]:
        return {"epsilon": self.settings.levels[severity], "noise_seed": int(rng.integers(2**31))}

    def craft(self, cases: Sequence[CraftCase], probe: Probe) -> Sequence[FollowUp | Exception]:
        with torch.enable_grad():
            pixels = torch.stack([torch.from_numpy(c.seed.image.copy()).permute(2, 0, 1).float() / 255 for c in cases])
            noise = [np.random.default_rng(c.params["noise_seed"]).uniform(-1, 1, pixels.shape[1:]) for c in cases]
            start = (pixels + torch.from_numpy(np.stack(noise)).float() / 255).clamp(0, 1).requires_grad_()
            logits = probe.logits(start)
            truth = torch.tensor([SHADES.names.index(c.seed.labels[0]) for c in cases])
            loss = torch.nn.functional.cross_entropy(logits, truth, reduction="none")
            (gradient,) = torch.autograd.grad(loss.sum(), start)
        follow_ups: list[FollowUp | Exception] = []
        for number, case in enumerate(cases):
            if not bool(gradient[number].isfinite().all()):
                follow_ups.append(BadOutput("the gradient is not finite"))
                continue
            step = gradient[number].sign().permute(1, 2, 0).numpy().astype(np.int16) * int(case.params["epsilon"])
            image = np.clip(case.seed.image.astype(np.int16) + step, 0, 255).astype(np.uint8)
            crafting = Crafting(loss_before=float(loss[number].detach()), queries=1, reference="truth")
            follow_ups.append(
                FollowUp(image=image, params=case.params, scale=case.params["epsilon"], crafting=crafting)
            )
        return follow_ups


def crafting_suite(
    *,
    systems: dict[str, dict[str, Any]] | None = None,
    crafted_on: str = "each",
    crafter: dict[str, Any] | None = None,
    natural: bool = True,
    count: int = 4,
    privacy: Privacy | None = None,
    severities: Sequence[int] = (1, 3, 5),
    repeats: int = 1,
    system: type[NetSystem] = LocalNet,
) -> Suite:
    """Return a suite whose relation ``push`` is crafted on each system, or on a named one."""
    suite = label_suite(
        seeds={"count": count},
        systems=systems or {"net": {}},
        system=system,
        relations=None if natural else {},
        severities=severities,
        against="truth",
        privacy=privacy,
    )
    push = plan_of("relations", "push", Push, severities=list(severities), crafted_on=crafted_on, repeats=repeats)
    named = {} if crafter is None else {"push": plan_of("systems", crafted_on, system, **crafter)}
    return replace(suite, relations=(*suite.relations, push), crafters=named)
