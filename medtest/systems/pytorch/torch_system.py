"""Base class of systems that run a torch network, with one path from pixels to answers.

Each stage of the path is a method, so that analyses of a network (such as a probe of its gradients) use the same names
in every system::

    images ── fitted ──▶ uint8 at the network's side ── inputs ──▶ tensor ── forward ──▶ outputs ── answers ──▶ answers
    pixels ── fitted_pixels ──▶ float at that side ─ normalised ──┘            └── scores ─▶ the classes' scores
                                     └── label_logits, lesion_logits ──▶ true logits

:meth:`TorchSystem.fitted_pixels` and the stages after it are differentiable; none of them changes the network.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from medtest.core.cases import Address, Image
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.probes import Need
from medtest.systems.base import RawAnswer, System
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.pytorch.pixels import logits_of

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchSystem(System):
    """System that runs a torch network.

    Attributes:
        library: The module it needs besides torch, and the extra that installs it; "" if medtest requires it anyway.
    """

    needs_device = True
    probed: ClassVar[Need] = Need.GRADIENTS
    library: ClassVar[tuple[str, str]] = ("", "")
    _network: nn.Module | None = None
    _device = "cpu"

    def library_mistakes(self) -> list[Mistake]:
        """Return a mistake if the library is missing."""
        module, extra = self.library
        if not module or find_spec(module) is not None:
            return []
        return [Mistake(where=self.name, found=f"{module} is not installed", fix=f"pip install 'medtest[{extra}]'")]

    def open(self, *, device: str, threads: int) -> None:
        """Load the network; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: A library is missing, or its files do not hold a usable network.
        """
        torch.set_num_threads(max(1, threads))
        self._device = device
        try:
            network = self.load()
        except ImportError as error:
            module, extra = self.library
            if not module or error.name is None or error.name.partition(".")[0] != module:
                raise
            raise MedtestError(f"{self.name} needs {module}: pip install 'medtest[{extra}]'") from error
        self._network = network.to(device).eval()

    @abstractmethod
    def load(self) -> nn.Module:
        """Return the network with its weights."""

    @property
    def network(self) -> nn.Module:
        """The opened network.

        Raises:
            MedtestError: It is not open.
        """
        if self._network is None:
            raise MedtestError(f"{self.record_name} is not open")
        return self._network

    @property
    def device(self) -> str:
        """Device of the opened network, ``cpu`` or ``cuda:N``."""
        return self._device

    @property
    def largest_batch(self) -> int | None:
        """Maximum number of images in one forward pass; None for no limit."""
        return getattr(self.settings, "batch", None)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer a batch, split by image size and :attr:`largest_batch`."""
        answers: list[RawAnswer] = []
        with torch.inference_mode():
            for group in groups([self.fitted(image) for image in images], self.largest_batch):
                originals = images[len(answers) : len(answers) + len(group)]
                answers += self.answers(self.forward(self.inputs(group)), originals)
        return answers

    def fitted(self, image: Image) -> Image:
        """Return an image, uint8 RGB H×W×3, at the network's input size."""
        return image

    @abstractmethod
    def inputs(self, images: Sequence[Image]) -> Any:
        """Convert images of one size, as returned by :meth:`fitted`, to the network's input."""

    @property
    def input_kind(self) -> InputKind:
        """Input format of the network.

        Raises:
            MedtestError: Its preprocessing cannot be described by a format.
        """
        raise MedtestError(f"{self.record_name}: how its pixels are normalised is not known")

    def normalised(self, pixels: Tensor) -> Any:
        """Convert pixels, float32 B×3×h×w RGB in [0, 1] at the size of :meth:`fitted`, to the network's input."""
        return self.input_kind.normalised(pixels)

    def forward(self, inputs: Any) -> Any:
        """Return the network's output."""
        return self.network(inputs.to(self._device))

    @abstractmethod
    def scores(self, outputs: Any) -> Tensor:
        """Return the scores of classes in a network's output: B×C, or B×C×h×w for segmentation.

        Raises:
            BadOutput: The network returned something else.
        """

    @abstractmethod
    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return the answer to each image in the network's output."""

    def offers(self) -> Need:
        """Return gradients, for masks only if the class implements :meth:`lesion_logits`; see the base class."""
        most = super().offers()
        maps = type(self).lesion_logits is not TorchSystem.lesion_logits
        return Need.SCORES if most is Need.GRADIENTS and self.task.masks and not maps else most

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size: :meth:`fitted` on floats, with gradients.

        Args:
            pixels: Float B×3×H×W RGB in [0, 1], at the images' own size.
        """
        return pixels

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return logits of the classes, B×C in the order of :attr:`classes`, independent of the network's last layer.

        Their softmax, or sigmoid if several classes may be true, gives the probabilities of :meth:`answers`.

        Args:
            pixels: As returned by :meth:`fitted_pixels`.
            multi: Whether several classes may be true.
        """
        return self.class_logits(self.scores(self.forward(self.normalised(pixels))), multi=multi)

    def class_logits(self, scores: Tensor, *, multi: bool) -> Tensor:
        """Return logits of the classes for the result of :meth:`scores`, float32 (or float64 for such input)."""
        exact = exactly(tensor_of(scores))
        return logits_of(exact, multi=multi) if self.answer_form == "probabilities" else exact

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits B×H×W whose sigmoid is the lesion's probability at the images' size.

        Args:
            pixels: As returned by :meth:`fitted_pixels`.
            shape: Height and width of the images.

        Raises:
            MedtestError: The system gives no masks.
        """
        raise MedtestError(f"{self.record_name} gives no masks")

    def close(self) -> None:
        """Release the network."""
        self._network = None


def groups(images: Sequence[Image], most: int | None) -> Iterator[list[Image]]:
    """Split a batch by image size and limit, keeping the order."""
    group: list[Image] = []
    for image in images:
        if group and (group[-1].shape != image.shape or len(group) == most):
            yield group
            group = []
        group.append(image)
    if group:
        yield group


def exactly(scores: Tensor) -> Tensor:
    """Return scores in float32, or unchanged in double precision."""
    return scores if scores.is_floating_point() and scores.element_size() >= 4 else scores.float()


def tensor_of(output: object) -> Tensor:
    """Return a network's output, checked to be a tensor.

    Raises:
        BadOutput: It is something else.
    """
    if not isinstance(output, torch.Tensor):
        raise BadOutput(f"gave {type(output).__name__} where a tensor is expected")
    return output
