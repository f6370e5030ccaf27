"""Access of relations to a system under test, for relations that attack it.

Most relations change an image without knowing the system. An attack needs the system's scores, or their gradients with
respect to the pixels. It receives a :class:`Probe` of one system and nothing else: normalisation, resizing, cropping,
the order and the merging of classes are handled inside. Relations import no system; this module does not import torch.
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
"""Phrase in records for a network whose gradients are NaN or infinite."""
NO_GRADIENT = "no gradient reaches the pixels"
"""Phrase in records for a network whose scores do not depend differentiably on the pixels."""


class Need(StrEnum):
    """Access to a system, needed by a relation or offered by a system; each level includes the previous one."""

    NOTHING = "nothing"
    SCORES = "scores"
    GRADIENTS = "gradients"

    @property
    def rank(self) -> int:
        """Position in the order: a system of a higher rank offers everything that a lower rank needs."""
        return list(Need).index(self)


class Probe(Protocol):
    """Interface of one system for attacks. It leaves no trace in the system.

    Attributes:
        name: The system's name in records.
        digest: Digest of its class, settings and weights, which identifies attacks trained against it.
        gives: :attr:`Need.SCORES` or :attr:`Need.GRADIENTS`.
        kind: Name of the task: ``label`` or ``mask``.
        classes: For kind ``label``: the seeds' classes, the order of logits; None for masks.
        device: Device of the tensors, as accepted by ``torch.device``.
    """

    name: str
    digest: str
    gives: Need
    kind: str
    classes: Classes | None
    device: str

    def attached(self) -> AbstractContextManager[Any]:
        """Prepare the system for many calls of :meth:`logits`, and restore its state at the end, also after exceptions.

        Inside, the network is in evaluation mode and its parameters take no gradients; outside, every call switches
        modes itself, which means a pass over all modules. Put ``with probe.attached():`` around a crafted batch;
        nesting is allowed. At the end modes, parameters, buffers and the states of all random number generators are
        restored. An attack that needs random numbers must draw them from its own generator.

        Raises:
            BadOutput: At the end: the network has changed its own weights.
        """

    def logits(self, images: Any) -> Any:
        """Return the system's logits for images.

        Args:
            images: Torch tensor, float32 B×3×H×W RGB in [0, 1], at the prepared size, on :attr:`device`.

        Returns:
            Torch tensor, float32. For kind ``label`` B×C in the order of :attr:`classes`: true logits, even if the
            network itself ends in a softmax or a sigmoid; their softmax (one class is true) or sigmoid (several may be)
            gives the system's probabilities. For kind ``mask`` B×H×W, whose sigmoid is the probability map at the
            prepared size. Differentiable with respect to ``images`` if :attr:`gives` is ``gradients``; otherwise the
            system receives the pixels rounded to 8 bits.

        Raises:
            BadOutput: It returned NaN, a wrong shape, or an output without gradients for the pixels.
            Exception: Any exception of the network.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class CraftCase:
    """Follow-up to be crafted.

    Attributes:
        seed: The prepared source case.
        params: Parameters drawn by the relation's ``sample``.
        beside: For a relation that gathers: the images that the suite's other attacks of the same or a smaller scale
            made from the same image, each with the relation's id; uint8 H×W×3.
    """

    seed: PreparedSeed
    params: Params
    beside: Sequence[tuple[str, Image]] = ()
