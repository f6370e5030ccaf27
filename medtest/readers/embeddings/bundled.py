"""The network that ships with medtest: small and always available, with its own names for its metrics.

It is the network of the reader for drawn scenes (:mod:`medtest.readers.pictures.bundled.network`): features are the
means of the maps of its last stage, and the score of a class is its highest confidence anywhere in the picture. So it
distinguishes pictures of drawn objects by their content. It has never seen a photograph, so its distances between
photographs have no known meaning.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import cv2
import numpy as np

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.files.paths import package_folder
from medtest.readers.embeddings.base import Embedded, Embedder, FigureNames
from medtest.systems.files import cached_sha256

WEIGHTS: Final = "bundled-scenes.safetensors"
TEMPERATURE: Final = Path(__file__).with_name("temperature.json")
"""Result of scripts/fit_temperature.py, with the SHA-256 of the weights it belongs to."""


class BundledEmbedding(Embedder):
    """The bundled network."""

    name = "bundled"
    figures: ClassVar[FigureNames] = FigureNames(frechet="FD-embed", kernel="KD-embed", score="IS-embed")
    revision: ClassVar[int] = 1
    at_once = 16

    def __init__(self) -> None:
        self._network: Any = None
        self._features: dict[int, Any] = {}
        self._device = "cpu"
        self._side = 0

    @property
    def _file(self) -> Path:
        return package_folder() / "weights" / WEIGHTS

    @property
    def temperature(self) -> float | None:
        """The temperature that minimizes the negative log-likelihood on one-object scenes; None for other weights."""
        fitted = json.loads(TEMPERATURE.read_text(encoding="utf-8"))
        return float(fitted["temperature"]) if fitted["weights"] == cached_sha256(self._file) else None

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the SHA-256 of its weights."""
        return {"net": self.name, "revision": self.revision, "weights": cached_sha256(self._file)}

    def open(self, *, device: str, threads: int) -> None:
        """Load its weights.

        Raises:
            MedtestError: The weights are not the bundled ones.
        """
        from medtest.readers.pictures.bundled.network import SIDE, load_scene_net

        torch.set_num_threads(max(1, threads))
        self._device, self._side = device, SIDE
        network, _ = load_scene_net(self._file)
        network.stages[-1].register_forward_hook(self._keep)
        self._network = network.to(device)

    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return features and scores of each picture after resizing it to a square of the network's input size."""
        side = (self._side, self._side)
        small = [cv2.resize(image, side, interpolation=cv2.INTER_AREA) for image in images]
        pixels = torch.from_numpy(np.stack(small)).to(self._device)
        with torch.inference_mode():
            inputs = pixels.permute(0, 3, 1, 2).float().div(255).contiguous(memory_format=torch.channels_last)
            maps = self._network(inputs)
            scores = torch.stack([level.heat.amax((2, 3)) for level in maps]).amax(0)
        features = self._features.pop(threading.get_ident())
        return Embedded(features.float().cpu().numpy(), scores.float().cpu().numpy())

    def _keep(self, module: Any, inputs: Any, maps: Any) -> None:
        self._features[threading.get_ident()] = maps.mean((2, 3))
