"""AGDN as a system under test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtest.phantoms.classes import CAPSULE
from medtest.systems.checkpoints.network import SUFFIXES
from medtest.systems.classification.network import ClassificationNetwork
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor

    from medtest.systems.classification.networks.agdn import AGDN


class AGDNSystem(ClassificationNetwork):
    """AGDN (Xing et al., IEEE TMI 2020), compact or with weights of its TensorFlow graph.

    No weights of it were published. A trained checkpoint is supplied as an .npz file of its arrays under their
    TensorFlow names; optimizer slots may be included.

    Official input: 320×320 pixels, divided by 255 and not normalised; other images are resized to that by PIL's
    antialiased bilinear filter (the authors store theirs at that size). The first branch sees them at 128×128, resized
    as in TensorFlow 1, without antialiasing; the second one sees 128×128 pixels sampled from them according to the
    first one's attention. With ``input: as_is`` images of any size are accepted.

    Answer: the softmax of both branches together (normal, vascular, inflammatory).

    The published network changes itself at every answer, by a step of its spectral norms' power iteration; this one
    does not: see :class:`~medtest.systems.classification.networks.aggregation.SpectralConv`.
    """

    family = "agdn"
    published = ("agdn",)
    published_size = 320
    takes_any_size = True
    own_classes = CAPSULE
    answer_output = 2
    answer_form = "probabilities"
    suffixes = (*SUFFIXES, ".npz")

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return the logits of both branches together, with gradients through both."""
        network: AGDN = self.network  # type: ignore[assignment]
        return exactly(self.forward(self.normalised(pixels), network.logits))

    def _arguments(self, batch: Tensor) -> tuple[Tensor, ...]:
        from medtest.systems.classification.networks.agdn import inputs_of

        return inputs_of(batch)
