"""What the adapters of families of segmentation networks share: from scores to maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from medtest.cases import Image
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
from medtest.systems.base import RawAnswer
from medtest.systems.border import CUT
from medtest.systems.torch_system import TorchSystem

if TYPE_CHECKING:
    from torch import Tensor


class TorchNetwork(TorchSystem):
    """A segmentation network described by files of its own; see :class:`medtest.systems.torch_system.TorchSystem`.

    Its :meth:`load` calls :meth:`has_classes` if its files name them.
    """

    Settings: ClassVar[type[NetworkSettings]] = NetworkSettings

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._names: tuple[str, ...] | None = None
        self._classes: tuple[int, ...] = ()
        self._activation: Activation = "auto"
        self._threshold = CUT

    def has_classes(self, names: Sequence[str]) -> None:
        """Set the names of the classes the network distinguishes.

        Raises:
            MedtestError: Nobody said which of them is the lesion.
        """
        self._names = tuple(names)
        self._classes = lesion_classes(self.settings.lesion, self._names, system=self.name)
        self._activation = resolved_activation(self.settings.activation, len(names), system=self.name)

    def scores(self, outputs: Any) -> Tensor:
        """Return the classes' scores, in their order, B×C×h×w."""  # noqa: RUF002
        return checked_scores(outputs, None, None)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one map per image, at the size the network gives."""
        return list(self.probability(checked_scores(self.scores(outputs), len(images), None)))

    def probability(self, scores: Tensor) -> Any:
        """Return the lesion's probability of B×C×h×w scores as float32 B×h×w, the threshold moved to 0.5."""
        if self._names is None:
            self.has_classes(plain_names(scores.shape[1]))
        checked = checked_scores(scores, None, len(self._names or ()))
        return at_half(self.to_probability(checked).cpu().numpy(), self.threshold)

    @property
    def threshold(self) -> float:
        """The user's threshold, else that of the network's files."""
        given: float | None = self.settings.threshold
        return self._threshold if given is None else given

    def to_probability(self, scores: Tensor) -> Tensor:
        """Return the lesion's probability of B×C×h×w scores."""
        return lesion_map(scores, self._classes, self._activation)
