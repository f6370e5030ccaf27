"""The network that comes with medtest: small and at hand, with names of its own.

It is the compact Inception-v3 that ships as a classifier of fundus phantoms: a network of the family that FID is named
after, a third as wide, which has never seen a photograph. It tells drawn pictures apart by colour, edges and texture.
A distance by it says that two sets of pictures differ, or do not; how much worse one looks it does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from medtest.cases import Image
from medtest.embeddings.base import Embedded, Embedder, FigureNames
from medtest.systems.checkpoints.inputs import INPUTS
from medtest.systems.checkpoints.weights import load_network
from medtest.systems.files import cached_sha256

WEIGHTS: Final = Path(__file__).parents[1] / "weights" / "inceptionv3_dr-compact.safetensors"
SIDE: Final = 128
FAMILY: Final = "inceptionv3_dr"


class Bundled(Embedder):
    """The network."""

    name = "bundled"
    figures: ClassVar[FigureNames] = FigureNames(frechet="FD-embed", kernel="KD-embed", score="IS-embed")
    revision: ClassVar[int] = 1
    at_once = 32

    def __init__(self) -> None:
        self._network: Any = None
        self._features: list[Any] = []
        self._device = "cpu"

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the SHA-256 of its weights."""
        return {"net": self.name, "revision": self.revision, "side": SIDE, "weights": cached_sha256(WEIGHTS)}

    def open(self, *, device: str, threads: int) -> None:
        """Load its weights."""
        import torch

        torch.set_num_threads(max(1, threads))
        self._device = device
        network: Any = load_network(WEIGHTS)[0]
        network.model.Mixed_5d.register_forward_hook(lambda module, given, out: self._features.append(out.mean((2, 3))))
        self._network = network.to(device).eval()

    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return features and scores of each picture, resized to a square of 128 pixels."""
        import cv2
        import numpy as np
        import torch

        small = np.stack(
            [cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for image in images], dtype=np.uint8
        )
        with torch.inference_mode():
            scores = self._network(torch.from_numpy(INPUTS[FAMILY].tensor(small)).to(self._device))
        features = self._features.pop()
        return Embedded(features.float().cpu().numpy(), scores.float().cpu().numpy())
