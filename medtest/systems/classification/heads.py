"""Systems that read findings and have no published weights, trained on phantoms.

A head on the features of a compact network is a small file; the weights of the network that it reads stay as they are.
Lesions in capsule frames are read by a network of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from medtest.core.cases import Json
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files import file_sha256
from medtest.core.files.paths import package_folder
from medtest.core.files.tensors import described, read_tensors
from medtest.phantoms.chest.sides import CHEST_SIDES, SIDED, UNSIDED
from medtest.phantoms.classes import CAPSULE_FINDINGS
from medtest.systems.checkpoints.weights import WeightsInfo, load_network
from medtest.systems.classification.families import CheXNetSystem
from medtest.systems.classification.network import ClassificationNetwork
from medtest.systems.files import cached_sha256
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.systems.classification.networks.chexnet import CheXNet

FORMAT: Final = "medtest-head-1"


class FindingsSystem(ClassificationNetwork):
    """Base class of networks whose only weights ship with medtest. They end in a sigmoid."""

    answer_form = "probabilities"

    def notice(self) -> str:
        """Return nothing: only the compact network exists."""
        return ""

    def check(self) -> Sequence[Mistake]:
        """Return a mistake if other weights are named."""
        own = self.settings
        named = {"checkpoint": own.checkpoint, "weights": None if own.weights == "compact" else own.weights}
        fix = "leave it out: the network ships with medtest and has no other weights"
        return [Mistake(where=self.name, key=key, found=str(value), fix=fix) for key, value in named.items() if value]

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return the sigmoid's inputs."""
        return exactly(self.forward(self.normalised(pixels), self.network.logits))  # type: ignore[arg-type]


def load_head(network: nn.Module, path: Path, trunk_sha256: str) -> None:
    """Load the weights of a network's head.

    Args:
        network: A network with a ``head``.
        path: Weights of the head.
        trunk_sha256: SHA-256 of the file of the network below it.

    Raises:
        MedtestError: The file holds no head, or one for another network.
    """
    with described(path, FORMAT, "these are not the weights of a head") as facts:
        if facts["trunk_sha256"] != trunk_sha256:
            raise MedtestError(f"{path.name}: it was trained on the features of another network")
    try:
        network.head.load_state_dict(read_tensors(path))  # type: ignore[union-attr]
    except RuntimeError as error:
        raise MedtestError(f"{path.name}: its weights do not fit the network: {str(error)[:200]}") from error


class CheXNetSidesSystem(FindingsSystem, CheXNetSystem):
    """Finding by side in a chest film: a head on the compact CheXNet.

    Official input as of :class:`~medtest.systems.classification.families.CheXNetSystem`, one crop. Answer:
    22 probabilities, of which several may hold: six findings without a side, and eight on the patient's left and right
    (:data:`~medtest.phantoms.chest.sides.CHEST_SIDES`).
    """

    family = "chexnet_sides"
    own_classes = CHEST_SIDES

    @property
    def trunk_weights(self) -> Path:
        """File of the network whose features the head reads."""
        return package_folder() / "weights" / "chexnet-compact.safetensors"

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights of head and network."""
        return {**super().fingerprint(), "trunk_sha256": cached_sha256(self.trunk_weights)}

    def trunk_with_head(self) -> tuple[nn.Module, WeightsInfo]:
        """Return CheXNet with a new head that reads each half of the film, and the network's description."""
        from medtest.systems.classification.networks.heads import CheXNetSides

        trunk, info = load_network(self.trunk_weights)
        return CheXNetSides(cast("CheXNet", trunk), len(UNSIDED), len(SIDED)), info

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        network, info = self.trunk_with_head()
        load_head(network, self.compact_weights, file_sha256(self.trunk_weights))
        return network, info


class CapsuleFindingsSystem(FindingsSystem):
    """Lesions in a capsule frame: :class:`~medtest.systems.classification.networks.lesions.LesionNet`.

    Official input: resized to 192×192 by PIL's antialiased bilinear filter, divided by 255. Answer: probabilities of
    :data:`~medtest.phantoms.classes.CAPSULE_FINDINGS`, of which several may hold.
    """

    family = "capsule_findings"
    published = ()
    published_size = 192
    own_classes = CAPSULE_FINDINGS
