"""What every system is that runs a torch network: opened once, asked in batches, with one way from pixels to answers.

Each station of the way is a method, so that whatever looks inside a network (a probe of its gradients, say) finds them
under one name in every system::

    images ── fitted ──▶ uint8 at the network's side ── inputs ──▶ tensor ── forward ──▶ outputs ── answers ──▶ answers
    pixels ── fitted_pixels ──▶ float at that side ─ normalised ──┘            └── scores ─▶ the classes' scores
                                       └── label_logits, lesion_logits ──▶ true logits

:meth:`TorchSystem.fitted_pixels` and what follows it are differentiable; none of them changes the network.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from medtest.core.cases import Address, Image
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.probes import Need
from medtest.systems.base import RawAnswer, System
from medtest.systems.checkpoints.inputs import InputKind

if TYPE_CHECKING:
    from torch import Tensor, nn


class TorchSystem(System):
    """A system that runs a torch network.

    Attributes:
        library: The module it needs beside torch, and the extra that installs it; "" where medtest needs it anyway.
    """

    needs_device = True
    probed: ClassVar[Need] = Need.GRADIENTS
    library: ClassVar[tuple[str, str]] = ("", "")

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: nn.Module | None = None
        self._device = "cpu"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_network": None}

    def library_mistakes(self) -> list[Mistake]:
        """Return that the library is missing, if it is."""
        module, extra = self.library
        if not module or find_spec(module) is not None:
            return []
        return [Mistake(where=self.name, found=f"{module} is not installed", fix=f"pip install 'medtest[{extra}]'")]

    def open(self, *, device: str, threads: int) -> None:
        """Load the network; see :class:`medtest.systems.base.System`.

        Raises:
            MedtestError: A library is missing, or its files do not hold a network that can be run.
        """
        import torch

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
        """The network, once it is opened.

        Raises:
            MedtestError: It is not.
        """
        if self._network is None:
            raise MedtestError(f"{self.record_name} was asked before it was opened")
        return self._network

    @property
    def device(self) -> str:
        """Where the network runs, ``cpu`` or ``cuda:N``, once it is opened."""
        return self._device

    @property
    def largest_batch(self) -> int | None:
        """Most images in one forward pass; None for as many as the run gives."""
        return getattr(self.settings, "batch", None)

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer a batch, cut where images of other sizes or :attr:`largest_batch` demand it."""
        import torch

        answers: list[RawAnswer] = []
        with torch.inference_mode():
            for group in groups([self.fitted(image) for image in images], self.largest_batch):
                given = images[len(answers) : len(answers) + len(group)]
                answers += self.answers(self.forward(self.inputs(group)), given)
        return answers

    def fitted(self, image: Image) -> Image:
        """Return an image, uint8 RGB H×W×3, at the side at which the network gets it."""
        return image

    @abstractmethod
    def inputs(self, images: Sequence[Image]) -> Any:
        """Return images of one size, as :meth:`fitted` gives them, as the network takes them."""

    @property
    def input_kind(self) -> InputKind:
        """How the network wants its pixels.

        Raises:
            MedtestError: Its own preprocessing does more than that.
        """
        raise MedtestError(f"{self.record_name}: how its pixels are normalised is not known")

    def normalised(self, pixels: Tensor) -> Any:
        """Return pixels, float32 B×3×h×w RGB in [0, 1] at the side of :meth:`fitted`, as the network takes them."""
        return self.input_kind.normalised(pixels)

    def forward(self, inputs: Any) -> Any:
        """Return what the network gives for inputs."""
        return self.network(inputs.to(self._device))

    @abstractmethod
    def scores(self, outputs: Any) -> Tensor:
        """Return the scores of classes among a network's outputs: B×C, or B×C×h×w where it segments.

        Raises:
            BadOutput: The network gave something else.
        """

    @abstractmethod
    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return the answer to each image of what the network gave for them."""

    def offers(self) -> Need:
        """Return gradients, of masks where the class says how logits become its map; see the base class."""
        most = super().offers()
        maps = type(self).lesion_logits is not TorchSystem.lesion_logits
        return Need.SCORES if most is Need.GRADIENTS and self.task.masks and not maps else most

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the side at which the network gets them: :meth:`fitted` on floats, with gradients.

        Args:
            pixels: Float B×3×H×W RGB in [0, 1], at the images' own size.
        """
        return pixels

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return logits of the classes, B×C in the order of :attr:`classes`, whatever the network itself ends in.

        Their softmax, or sigmoid where several classes may be true, are the probabilities of :meth:`answers`.

        Args:
            pixels: As :meth:`fitted_pixels` gives them.
            multi: Whether several classes may be true.
        """
        return self.class_logits(self.scores(self.forward(self.normalised(pixels))), multi=multi)

    def class_logits(self, scores: Tensor, *, multi: bool) -> Tensor:
        """Return logits of the classes of what :meth:`scores` gives for labels, float32 (or float64 of such)."""
        from medtest.systems.pytorch.pixels import logits_of

        exact = exactly(tensor_of(scores))
        return logits_of(exact, multi=multi) if self.answer_form == "probabilities" else exact

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits B×H×W whose sigmoid is the lesion's probability at the images' size.

        Args:
            pixels: As :meth:`fitted_pixels` gives them.
            shape: Height and width of the images.

        Raises:
            MedtestError: It gives no masks.
        """
        raise MedtestError(f"{self.record_name} gives no masks")

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


def exactly(scores: Tensor) -> Tensor:
    """Return scores in float32, or in double precision where they are in that."""
    return scores if scores.is_floating_point() and scores.element_size() >= 4 else scores.float()


def tensor_of(given: Any) -> Tensor:
    """Return what a network gave where a tensor is expected.

    Raises:
        BadOutput: It is something else.
    """
    import torch

    if not isinstance(given, torch.Tensor):
        raise BadOutput(f"gave {type(given).__name__} where a tensor is expected")
    return given
