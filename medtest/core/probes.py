"""What a relation may ask of a system under test, and what is known of a follow-up that was made so.

Most relations change an image without knowing who will see it. One that attacks needs the scores of a system, or their
gradients with respect to the pixels. It is handed a :class:`Probe` of one system and nothing else of it: normalisation,
resizing, cropping, the order and the merging of classes lie inside. Relations import no system; this module imports no
torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from medtest.core.cases import Classes, Image, Params, PreparedSeed


NOT_FINITE = "gave a gradient that is not finite"
"""What a record says of a network whose gradients are NaN or infinite."""
NO_GRADIENT = "no gradient reaches the pixels"
"""What a record says of a network whose scores do not depend on the pixels in a way that a gradient could follow."""


class Need(StrEnum):
    """What a relation needs of a system, and what a system can give; each includes the one before."""

    NOTHING = "nothing"
    SCORES = "scores"
    GRADIENTS = "gradients"

    @property
    def rank(self) -> int:
        """Its place in the order: what is of a higher rank gives what one of a lower needs."""
        return list(Need).index(self)


class Probe(Protocol):
    """One system, as whoever attacks it sees it. It leaves no trace in the system.

    Attributes:
        name: The system's name in records.
        digest: Digest of its class, settings and weights, by which what was trained against it is found.
        gives: :attr:`Need.SCORES` or :attr:`Need.GRADIENTS`.
        kind: Name of the task: ``label`` or ``mask``.
        classes: Of kind ``label``: the seeds' classes, in whose order logits are; None of masks.
        device: Where tensors must lie, as ``torch.device`` takes it.
    """

    name: str
    digest: str
    gives: Need
    kind: str
    classes: Classes | None
    device: str

    def attached(self) -> AbstractContextManager[Any]:
        """Ready the system for many calls of :meth:`logits`, and put everything back at the end, exceptions included.

        Inside, the network is in evaluation mode and its parameters take no gradients; outside, every single call does
        that for itself, which costs a look through all of its modules. Put ``with probe.attached():`` around a batch
        that is crafted; it may be entered again within itself. At its end modes, parameters, buffers and the states of
        all random number generators are what they were. Whoever draws numbers of their own for an attack draws them
        from a generator of their own.

        Raises:
            BadOutput: At the end: the network has changed its own weights.
        """

    def logits(self, images: Any) -> Any:
        """Return what the system makes of images.

        Args:
            images: Torch tensor, float32 B×3×H×W RGB in [0, 1], at the prepared size, on :attr:`device`.

        Returns:
            Torch tensor, float32. Of kind ``label`` B×C in the order of :attr:`classes`: true logits, also where the
            network itself ends in a softmax or a sigmoid; their softmax (one class is true) or sigmoid (several may be)
            are the system's probabilities. Of kind ``mask`` B×H×W, whose sigmoid is the probability map at the prepared
            size. Differentiable with respect to ``images`` where :attr:`gives` is ``gradients``; else the system is
            asked about the pixels rounded to 8 bits.

        Raises:
            BadOutput: It gave NaN, a wrong shape, or nothing of which a gradient reaches the pixels.
            Exception: Whatever the network raises.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class CraftCase:
    """One follow-up that is to be crafted.

    Attributes:
        seed: The prepared source case.
        params: What the relation's ``sample`` drew for it.
        beside: Of a relation that gathers: what the suite's other attacks of the same scale or less made of the same
            image, each with the relation's id; uint8 H×W×3.
    """

    seed: PreparedSeed
    params: Params
    beside: Sequence[tuple[str, Image]] = ()
