"""A small classifier with a probe, labelled cases, and generators written to where the relation loads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from medtest.core.cases import Classes, PreparedSeed, SeedRef
from medtest.core.probes import Need
from medtest.relations.adversarial.generators.files import (
    FILE,
    GeneratorInfo,
    GeneratorSettings,
    save_generator,
    training_folder,
)
from medtest.relations.adversarial.generators.network import GeneratorShape, PerturbationGenerator, initialise

SIDE = 32
ONE = Classes(names=("dark", "middle", "bright"))
SEVERAL = Classes(names=("red", "green", "blue"), multi=True)
DIGEST = "0123456789abcdef01234567"


class Brightness(nn.Module):
    """Classifier by mean brightness (one label), or by the channels that are bright (several)."""

    def __init__(self, classes: Classes) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, images: Tensor) -> Tensor:
        """Return logits, B×3."""
        means = images.mean(dim=(2, 3))
        if self.classes.multi:
            return (means - 0.5) * 60.0
        places = torch.tensor([0.40, 0.50, 0.60])
        return -((means.mean(dim=1, keepdim=True) - places) ** 2) * 2000.0


class SmallProbe:
    """A probe of :class:`Brightness`."""

    kind, device, gives, name, digest = "label", "cpu", Need.GRADIENTS, "small", DIGEST

    def __init__(self, classes: Classes = ONE) -> None:
        self.classes = classes
        self.network = Brightness(classes)
        self.asked = 0

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Ready nothing."""
        yield

    def logits(self, images: Tensor) -> Tensor:
        """Return logits and count."""
        self.asked += len(images)
        return self.network(images)


def picture(number: int, side: int = SIDE) -> np.ndarray[Any, Any]:
    """Return a noisy picture, uint8, with about the brightness of a class."""
    rng = np.random.default_rng(number)
    level = (0.41, 0.5, 0.59)[number % 3] + rng.uniform(-0.005, 0.005)
    field = np.clip(level + rng.normal(0, 0.08, (side, side, 3)), 0, 1)
    return (field * 255).round().astype(np.uint8)


def seed_of(number: int, classes: Classes = ONE, side: int = SIDE) -> PreparedSeed:
    """Return a prepared seed; its four leftmost columns are the black frame."""
    image = picture(number, side)
    frame = np.zeros((side, side), bool)
    frame[:, :4] = True
    image[frame] = 0
    return PreparedSeed(
        ref=SeedRef(dataset="d", seed_id=f"s{number}"),
        image=image,
        mask=None,
        original_mask=None,
        frame=frame,
        grey=np.ones((side, side), np.float32),
        kind="label",
        classes=classes,
        labels=None,
    )


def write_generator(
    settings: GeneratorSettings, *, classes: Classes = ONE, side: int = SIDE, seed: int = 0, digest: str = DIGEST
) -> Path:
    """Write a generator with random weights to where the relation loads it; return the file."""
    shape = GeneratorShape(width=2, side=side)
    network = PerturbationGenerator(shape)
    initialise(network, seed)
    info = GeneratorInfo(
        settings=settings, shape=shape.described(), classes=classes, mean=(0.6, 0.5, 0.4), std=(0.1, 0.2, 0.3)
    )
    path = training_folder(digest, classes, side, settings) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    save_generator(path, network.state_dict(), info)
    return path
