"""A probe of a small network for tests of attacks, and seeds of each kind of answer."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from medtest.core.cases import Classes, FollowUp, PreparedSeed, SeedRef
from medtest.core.plugins import parts
from medtest.core.probes import CraftCase, Need

SIDE = 24
torch.set_num_threads(1)  # small tensors: more threads wait for one another
ONE = Classes(names=("benign", "odd", "melanoma"))
SEVERAL = Classes(names=("mass", "nodule", "hernia", "oedema"), multi=True)


class SmallProbe:
    """A probe without a system: a fixed network, one of several kinds."""

    gives = Need.GRADIENTS

    def __init__(self, classes: Classes | None, network: Any = None, *, seed: int = 0) -> None:
        self.name, self.digest, self.device, self.classes = "small", "", "cpu", classes
        self.kind = "mask" if classes is None else "label"
        self.asked = 0
        torch.manual_seed(seed)
        count = 1 if classes is None else len(classes.names)
        body = nn.Sequential(nn.Conv2d(3, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, count, 5, padding=2)).eval()
        for parameter in body.parameters():
            parameter.requires_grad_(False)
        self._network = network or (body if classes is None else lambda x: 80 * body(x).mean(dim=(2, 3)))

    def attached(self) -> AbstractContextManager[None]:
        return nullcontext()

    def logits(self, images: Tensor) -> Tensor:
        self.asked += len(images)
        output = self._network(images)
        return output[:, 0] if self.classes is None else output


def seed_of(classes: Classes | None, *, number: int = 0, labels: Any = "own", probe: SmallProbe | None = None) -> Any:
    """Return a prepared seed; by default its truth is the probe's answer."""
    rng = np.random.default_rng(number)
    image = rng.integers(40, 216, (SIDE, SIDE, 3)).astype(np.uint8)
    frame = np.zeros((SIDE, SIDE), np.bool_)
    frame[:3] = True
    image[frame] = 0
    mask = np.zeros((SIDE, SIDE), np.bool_)
    mask[8:16, 8:16] = True
    if labels == "own" and classes is not None and probe is not None:
        logits = probe.logits(torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255)[0]
        hits = logits > 0 if classes.multi else torch.arange(len(logits)) == logits.argmax()
        labels = tuple(name for name, hit in zip(classes.names, hits.tolist(), strict=True) if hit)
    return PreparedSeed(
        ref=SeedRef(dataset="d", seed_id=f"s{number}"),
        image=image,
        mask=mask,
        original_mask=None,
        frame=frame,
        grey=np.ones((SIDE, SIDE), np.float32),
        kind="mask" if classes is None else "label",
        classes=classes,
        labels=None if labels == "own" else labels,
    )


def relation(name: str, **settings: Any) -> Any:
    """Return a bundled relation with settings over its defaults."""
    info = parts("relations")[name]
    cls = info.load()
    return cls(cls.Settings(**{**info.defaults, **settings}))


def crafted(attack: Any, probe: SmallProbe, seeds: list[Any], severity: int = 3) -> list[FollowUp]:
    """Return the follow-ups that an attack crafts of seeds at one severity."""
    cases = [
        CraftCase(seed=seed, params=attack.sample(seed, severity, np.random.default_rng(number)))
        for number, seed in enumerate(seeds)
    ]
    follow_ups = attack.craft(cases, probe)
    for follow_up in follow_ups:
        if isinstance(follow_up, Exception):
            raise follow_up
    return list(follow_ups)  # type: ignore[arg-type]


def logits_of(probe: SmallProbe, images: list[Any]) -> Tensor:
    """Return the probe's logits of saved images."""
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        return probe.logits(pixels)
