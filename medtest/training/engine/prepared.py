"""Trainings that are ready to run, and writers of compact networks' weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtest.systems.checkpoints.weights import WeightsInfo, save_weights
from medtest.systems.pytorch import networks

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.training.engine.trainer import Training, Writer


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTraining:
    """Training task with its weights file and the labels of its MLflow run.

    Attributes:
        training: The training task.
        weights: The weights file that it writes, in the training's folder.
        name: Name of the MLflow run.
        params: Parameters of the run in addition to the options.
        close: Releases what the batches hold.
    """

    training: Training
    weights: Path
    name: str
    params: Mapping[str, Any]
    close: Callable[[], None] = lambda: None


def compact_writer(weights: Path, config: Any, *, size: int, classes: tuple[str, ...] = ()) -> Writer:
    """Return the writer of a compact network's weights.

    Args:
        weights: The file to write.
        config: Description of the network, see :mod:`medtest.systems.pytorch.networks`.
        size: Input side of the trained network in pixels.
        classes: Names of its classes, if not the family's own.
    """

    def write(state: Mapping[str, Tensor], note: str) -> None:
        info = WeightsInfo(network=networks.describe(config), size=size, note=note, classes=classes)
        save_weights(weights, state, info)

    return write
