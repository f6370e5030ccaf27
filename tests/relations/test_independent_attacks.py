"""Attacks compared with foolbox's and pyautoattack's on the same small networks: no weaker, equal where exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from attack_parts import ONE, SIDE, SmallProbe, crafted, logits_of, relation, seed_of
from test_misleading_networks import right, smooth

from medtest.core.cases import Classes

EPSILON = 4


class Module(torch.nn.Module):
    """A network with the interface of these libraries."""

    def __init__(self, probe: SmallProbe) -> None:
        super().__init__()
        self.of = torch.nn.Parameter(torch.zeros(1))
        self.probe = probe

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.probe.logits(pixels) + 0 * self.of


def bent(x: torch.Tensor) -> torch.Tensor:
    """Compute a function that is not linear: a margin that swings."""
    return smooth(torch.sin(9 * x)) * 2


def right_of(probe: SmallProbe, pixels: torch.Tensor, truth: torch.Tensor) -> int:
    saved = (pixels.detach() * 255).round() / 255
    with torch.no_grad():
        return int((probe.logits(saved).argmax(1) == truth).sum())


@pytest.mark.parametrize("network", [smooth, bent], ids=["linear", "bent"])
def test_pgd_and_strongest_are_no_weaker_than_foolbox_s_pgd(network: Any) -> None:
    foolbox = pytest.importorskip("foolbox")
    probe = SmallProbe(ONE, network)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(16)]
    images = torch.from_numpy(np.stack([seed.image for seed in seeds])).permute(0, 3, 1, 2).float() / 255
    truth = torch.tensor([ONE.names.index(seed.labels[0]) for seed in seeds])
    model = foolbox.PyTorchModel(Module(probe).eval(), bounds=(0, 1))
    torch.manual_seed(0)
    attack = foolbox.attacks.LinfPGD(steps=20, abs_stepsize=1 / 255, random_start=False)
    _, their_pixels, _ = attack(model, images, truth, epsilons=EPSILON / 255)
    levels = {3: {"epsilon": EPSILON, "steps": 20, "step": 1}}
    pgd = relation("pgd", severities=[3], levels=levels, random_start=False, where="everywhere")
    own = crafted(pgd, probe, seeds)
    apart = (their_pixels * 255).round().byte().permute(0, 2, 3, 1).numpy().astype(int)
    same = [np.abs(apart[row] - follow_up.image.astype(int)).max() <= 1 for row, follow_up in enumerate(own)]
    assert all(same), "image by image, but for rounding of halves"
    worst = relation(
        "strongest", severities=[3], levels={3: {"epsilon": EPSILON}}, steps=20, tries=40, where="everywhere"
    )
    assert right(probe, crafted(worst, probe, seeds), seeds) <= right_of(probe, their_pixels, truth)


@pytest.mark.parametrize("network", [smooth, bent], ids=["linear", "bent"])
def test_strongest_is_no_weaker_than_pyautoattack_s_apgd_and_square(network: Any) -> None:
    library = pytest.importorskip("pyautoattack")
    probe = SmallProbe(ONE, network)
    seeds = [seed_of(ONE, number=n, probe=probe) for n in range(16)]
    images = torch.from_numpy(np.stack([seed.image for seed in seeds])).permute(0, 3, 1, 2).float() / 255
    truth = torch.tensor([ONE.names.index(seed.labels[0]) for seed in seeds])
    options = {"norm": "Linf", "eps": EPSILON / 255, "version": "custom", "attacks": ["apgd-ce", "square"], "seed": 0}
    auto_attack = library.AutoAttack(Module(probe).eval(), device="cpu", **options)
    auto_attack.apgd.n_iter, auto_attack.apgd.n_restarts, auto_attack.square.n_queries = 40, 1, 200
    pixels, _ = auto_attack.run_standard_evaluation(images, truth, batch_size=16)
    worst = relation(
        "strongest", severities=[3], levels={3: {"epsilon": EPSILON}}, steps=40, tries=200, where="everywhere"
    )
    follows = crafted(worst, probe, seeds)
    assert right(probe, follows, seeds) <= right_of(probe, pixels, truth)
    assert logits_of(probe, [follow_up.image for follow_up in follows]).shape == (16, 3)


def test_auto_attack_runs_by_name_and_repeats() -> None:
    pytest.importorskip("pyautoattack")
    four = Classes(names=("a", "b", "c", "d"))
    weight = torch.randn(4, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    probe = SmallProbe(four, lambda x: torch.einsum("bchw,kchw->bk", x - 0.5, weight))
    seed = seed_of(four, number=1, probe=probe)
    attack = relation("foolbox_attack", attack="AutoAttack", severities=[1], levels={1: {"epsilon": 16}})
    first, second = (crafted(attack, probe, [seed], 1)[0].image for _ in range(2))
    assert np.array_equal(first, second)
    assert four.names[int(logits_of(probe, [first]).argmax())] != seed.labels[0]
    assert np.abs(first.astype(int) - seed.image).max() <= 16
