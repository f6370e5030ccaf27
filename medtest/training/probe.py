"""Validation during a training: the averaged weights on pairs held out, kept on disk when they are the best so far."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medtest.systems import networks
from medtest.systems.segmentation.networks.inputs import INPUTS
from medtest.training.data import Pairs

if TYPE_CHECKING:
    from torch import nn

    from medtest.training.loop import Trainer


class Probe:
    """Validates the averaged weights and writes them when they are the best so far.

    Args:
        network: A copy of the network, its weights of no matter.
        config: Its description.
        pairs: Validation pairs by kind, at the side the network takes.
        path: Where the best weights are written.
        size: Side in pixels that the trained network takes.
        steps: Steps in all.
        device: "cpu" or "cuda:N".
    """

    def __init__(
        self,
        network: nn.Module,
        config: networks.NetworkConfig,
        pairs: Mapping[str, Pairs],
        path: Path,
        *,
        size: int,
        steps: int,
        device: str,
    ) -> None:
        import torch

        self._network = network.to(device).to(memory_format=torch.channels_last).eval()
        self._config = config
        self._family = networks.family_of(config)
        self._pairs = pairs
        self._path = path
        self._size = size
        self._steps = steps
        self._device = device

    def validate(self, trainer: Trainer) -> dict[str, float]:
        """Return the mean Dice by kind of pair."""
        from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
        from medtest.training.scores import dice_of

        self._network.load_state_dict(trainer.average)
        kind = INPUTS[self._family]
        found = {name: float(dice_of(self.answer, pairs, kind=kind).mean()) for name, pairs in self._pairs.items()}
        score = float(np.mean(list(found.values()))) if found else trainer.step / self._steps
        if trainer.keep_if_best(score):
            described = networks.describe(self._config)
            info = WeightsInfo(network=described, size=self._size, note=f"step {trainer.step}")
            save_weights(self._path, trainer.best["weights"], info)
        return found

    def answer(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map images as the network takes them, B×3×S×S, to probabilities B×S×S."""  # noqa: RUF002
        import torch

        from medtest.training.steps import answer_of

        with torch.inference_mode():
            given = torch.from_numpy(images).to(self._device, memory_format=torch.channels_last)
            logits = answer_of(self._family, self._network(given), (images.shape[2], images.shape[3]))
            found: Any = torch.sigmoid(logits)[:, 0].cpu().numpy()
            return np.asarray(found, np.float32)
