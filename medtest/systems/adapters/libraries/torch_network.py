"""What the adapters of families of torch networks share: opening, cutting batches, from scores to maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medtest.cases import Address, Image
from medtest.errors import MedtestError, Mistake
from medtest.systems.adapters.libraries.lesion import (
    Activation,
    NetworkSettings,
    at_half,
    checked_scores,
    lesion_classes,
    lesion_map,
    plain_names,
    resolved_activation,
)
from medtest.systems.base import RawAnswer, System
from medtest.systems.border import CUT

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchNetwork(System):
    """A torch network described by files of its own.

    Attributes:
        library: The module it needs beside torch, and the extra that installs it.
    """

    Settings: ClassVar[type[NetworkSettings]] = NetworkSettings
    needs_device = True
    library: ClassVar[tuple[str, str]] = ("", "")

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: nn.Module | None = None
        self._device = "cpu"
        self._names: tuple[str, ...] | None = None
        self._classes: tuple[int, ...] = ()
        self._activation: Activation = "auto"
        self._threshold = CUT

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_network": None}

    def library_mistakes(self) -> list[Mistake]:
        """Return that the library is missing, if it is."""
        module, extra = self.library
        if not module or find_spec(module) is not None:
            return []
        fix = f"pip install 'medtest[{extra}]'"
        return [Mistake(where=self.name, found=f"{module} is not installed", fix=fix)]

    def open(self, *, device: str, threads: int) -> None:
        """Load the network; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: A library is missing, its files do not hold a network that can be run, or nobody said which
                of its classes is the lesion.
        """
        import torch

        torch.set_num_threads(max(1, threads))
        try:
            network = self.load(device)
        except ImportError as error:
            module, extra = self.library
            if error.name is None or error.name.partition(".")[0] != module:
                raise
            raise MedtestError(f"{self.name} needs {module}: pip install 'medtest[{extra}]'") from error
        if self._names is not None:
            self._choose(self._names)
        self._network = network.to(device).eval()
        self._device = device

    @abstractmethod
    def load(self, device: str) -> nn.Module:
        """Return the network with its weights, on the CPU, and call :meth:`has_classes` if its files name them."""

    def has_classes(self, names: Sequence[str]) -> None:
        """Set the names of the classes the network distinguishes."""
        self._names = tuple(names)

    def _choose(self, names: tuple[str, ...]) -> None:
        self._classes = lesion_classes(self.settings.lesion, names, system=self.name)
        self._activation = resolved_activation(self.settings.activation, len(names), system=self.name)

    @abstractmethod
    def scores(self, network: nn.Module, images: Sequence[Image]) -> Iterator[Tensor]:
        """Yield the classes' scores of images of one size, in their order, in parts of B×C×h×w.

        Raises:
            BadOutput: The network gave something else.
        """

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return one map per image, at the size the network gives."""
        import torch

        if self._network is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        answers: list[RawAnswer] = []
        for group in groups(images, self.settings.batch):
            with torch.inference_mode():
                for part in self.scores(self._network, group):
                    answers.extend(np.asarray(one) for one in self.probability(part))
        return answers

    def probability(self, scores: Tensor) -> Any:
        """Return the lesion's probability of B×C×h×w scores as float32 B×h×w, the threshold moved to 0.5."""
        count = None if self._names is None else len(self._names)
        checked = checked_scores(scores, scores.shape[0], count)
        if self._names is None:
            self.has_classes(plain_names(checked.shape[1]))
            self._choose(self._names or ())
        return at_half(self.to_probability(checked).cpu().numpy(), self.threshold)

    @property
    def threshold(self) -> float:
        """The user's threshold, else that of the network's files."""
        given: float | None = self.settings.threshold
        return self._threshold if given is None else given

    def to_probability(self, scores: Tensor) -> Tensor:
        """Return the lesion's probability of B×C×h×w scores."""
        return lesion_map(scores, self._classes, self._activation)

    def close(self) -> None:
        """Let go of the network."""
        self._network = None


def groups(images: Sequence[Image], most: int | None) -> Iterator[list[Image]]:
    """Cut a batch where images of other sizes or the bound demand it, keeping the order."""
    group: list[Image] = []
    for image in images:
        if group and (group[-1].shape != image.shape or len(group) == most):
            yield group
            group = []
        group.append(image)
    if group:
        yield group
