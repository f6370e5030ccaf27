"""Heads on compact networks: pooling by arithmetic, sides and lesions on unseen phantoms, and refusals."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from medtest.cli.data.labelled import capsule_pictures
from medtest.core.errors import MedtestError
from medtest.phantoms.chest import make
from medtest.phantoms.chest.anatomy import build_chest, draw_build
from medtest.phantoms.chest.findings import draw_findings
from medtest.phantoms.chest.plan import Planned
from medtest.phantoms.chest.sides import CHEST_SIDES, SIDED, sides_of
from medtest.phantoms.classes import CAPSULE_FINDINGS
from medtest.phantoms.drawing import plane
from medtest.phantoms.labelled import stream
from medtest.systems.classification.heads import CapsuleFindingsSystem, CheXNetSidesSystem, load_head
from medtest.systems.classification.networks.heads import pooled_halves
from medtest.systems.classification.networks.lesions import LesionNet


@pytest.mark.parametrize("width", [6, 7])
def test_each_half_is_pooled_from_its_columns(width: int) -> None:
    maps = torch.rand(2, 3, 5, width)
    left, right = pooled_halves(maps)
    half, middle = width // 2, width % 2
    for pooled, own in ((left, maps[..., half + middle :]), (right, maps[..., :half])):
        total = own.sum((2, 3)) + 0.5 * middle * maps[..., half].sum(2)
        assert torch.allclose(pooled[:, :3], total / (5 * width / 2), atol=1e-6)
        largest = torch.maximum(own.amax((2, 3)), maps[..., half].amax(2)) if middle else own.amax((2, 3))
        assert torch.equal(pooled[:, 3:], largest)


@pytest.mark.parametrize("name", ["effusion", "pneumothorax", "consolidation"])
@pytest.mark.parametrize(("side", "words"), [(-1, "right"), (1, "left")])
def test_the_patients_left_is_the_right_half_of_a_film(name: str, side: int, words: str) -> None:
    part = partial(stream, 5, "chest", 1)
    chest = build_chest(plane(128), draw_build(part("patient")))
    drawn = draw_findings(part, chest, {name: Planned(name=name, side=side, both=False, strength=0.9)})
    change = np.abs(drawn.added) + np.abs(1.0 - drawn.air)
    assert np.sign((change * chest.where.x).sum()) == side
    facts = {"round_opacities": drawn.round_opacities, "traces": drawn.traces}
    assert sides_of(facts) == {name: {words}}


@pytest.mark.slow
def test_sides_are_right_on_unseen_films() -> None:
    system = CheXNetSidesSystem("chexnet_sides", CheXNetSidesSystem.Settings())
    system.open(device="cpu", threads=1)
    phantoms = [make(number, 612) for number in range(24)]
    scores = dict(zip(CHEST_SIDES.names, np.array(system.predict([p.image for p in phantoms], [])).T, strict=True))
    right = [
        bool((scores[f"left {name}"][at] > scores[f"right {name}"][at]) == (sides == {"left"}))
        for at, phantom in enumerate(phantoms)
        for name, sides in sides_of(phantom.facts).items()
        if len(sides) == 1 and max(scores[f"left {name}"][at], scores[f"right {name}"][at]) > 0.5
    ]
    assert len(right) > 12 and np.mean(right) > 0.9
    assert set(SIDED) == {name.partition(" ")[2] for name in CHEST_SIDES.names if " " in name}


def test_a_head_of_another_network_is_refused() -> None:
    system = CheXNetSidesSystem("chexnet_sides", CheXNetSidesSystem.Settings())
    network, _ = system.trunk_with_head()
    with pytest.raises(MedtestError, match="features of another network"):
        load_head(network, system.compact_weights, "0" * 64)
    with pytest.raises(MedtestError, match="not the weights of a head"):
        load_head(network, system.trunk_weights, "0" * 64)


def test_other_weights_are_a_mistake(tmp_path: Path) -> None:
    settings = CheXNetSidesSystem.Settings(checkpoint=str(tmp_path / "a.pth"))
    (mistake,) = CheXNetSidesSystem("chexnet_sides", settings).check()
    assert mistake.key == "checkpoint"


def test_a_lesion_of_a_few_pixels_counts_as_much_as_a_large_one() -> None:
    torch.manual_seed(0)
    network = LesionNet().eval()
    maps: list[torch.Tensor] = []
    network.blocks[-1].register_forward_hook(lambda module, inputs, output: maps.append(output))
    x = torch.rand(2, 3, 64, 64)
    probabilities = network(x)
    assert maps[0].shape == (2, 56, 8, 8)
    pooled = torch.cat([maps[0].mean((2, 3)), maps[0].flatten(2).max(2).values], 1)
    expected = pooled @ network.head.weight.T + network.head.bias
    assert torch.allclose(probabilities, torch.sigmoid(expected), atol=1e-6)


@pytest.mark.slow
def test_lesions_are_read_on_unseen_frames() -> None:
    system = CapsuleFindingsSystem("capsule_findings", CapsuleFindingsSystem.Settings())
    system.open(device="cpu", threads=1)
    frames = capsule_pictures(60, 77)
    scores = np.array(system.predict([picture.pixels() for picture in frames.pictures], []))
    right = [
        (scores[at, column] > 0.5) == (name in picture.truth.names())
        for at, picture in enumerate(frames.pictures)
        for column, name in enumerate(CAPSULE_FINDINGS.names)
    ]
    assert np.mean(right) > 0.85
