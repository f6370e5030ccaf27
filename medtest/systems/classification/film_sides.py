"""CheXNet with a head for the patient's sides as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtest.core.cases import Json
from medtest.core.errors import MedtestError, Mistake
from medtest.core.files import file_sha256
from medtest.core.files.paths import package_folder
from medtest.core.files.tensors import described, read_tensors
from medtest.phantoms.chest.sides import CHEST_SIDES, SIDED, UNSIDED
from medtest.systems.classification.families import CheXNetSystem
from medtest.systems.files import cached_sha256

if TYPE_CHECKING:
    from torch import nn

    from medtest.systems.checkpoints.weights import WeightsInfo

FORMAT = "medtest-film-sides-1"


class CheXNetSidesSystem(CheXNetSystem):
    """Finding by side in a chest film: the compact CheXNet with a head for sides, trained on phantoms.

    Official input as of :class:`~medtest.systems.classification.families.CheXNetSystem`, one crop. Answer:
    22 probabilities, of which several may hold: six findings without a side, and eight on the patient's left and right
    (:data:`~medtest.phantoms.chest.sides.CHEST_SIDES`). There are no published weights of it.
    """

    family = "chexnet_sides"
    published = ()
    own_classes = CHEST_SIDES

    def notice(self) -> str:
        """Return nothing: only the compact network exists."""
        return ""

    def check(self) -> Sequence[Mistake]:
        """Return a mistake if other weights are named."""
        own = self.settings
        named = {"checkpoint": own.checkpoint, "weights": None if own.weights == "compact" else own.weights}
        fix = "leave it out: the network ships with medtest and has no other weights"
        return [Mistake(where=self.name, key=key, found=str(value), fix=fix) for key, value in named.items() if value]

    @property
    def film_weights(self) -> Path:
        """File of the CheXNet whose features the head reads."""
        return package_folder() / "weights" / "chexnet-compact.safetensors"

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the head's and of CheXNet's weights."""
        return {**super().fingerprint(), "films_sha256": cached_sha256(self.film_weights)}

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        from medtest.systems.checkpoints.weights import load_network

        films, info = load_network(self.film_weights)
        return with_head(films, self.compact_weights, file_sha256(self.film_weights)), info


def with_head(films: nn.Module, path: Path, films_sha256: str) -> nn.Module:
    """Return a CheXNet with the head in a file.

    Args:
        films: The CheXNet.
        path: Weights of the head.
        films_sha256: SHA-256 of the CheXNet's file.

    Raises:
        MedtestError: The file holds no head, or the head of another CheXNet.
    """
    from medtest.systems.classification.networks.chexnet_sides import CheXNetSides

    with described(path, FORMAT, "this is no head for sides") as facts:
        if facts["films_sha256"] != films_sha256:
            raise MedtestError(f"{path.name}: it was trained on the features of another CheXNet")
    network = CheXNetSides(films, len(UNSIDED), len(SIDED))  # type: ignore[arg-type]
    try:
        network.head.load_state_dict(read_tensors(path))
    except RuntimeError as error:
        raise MedtestError(f"{path.name}: its weights do not fit the network: {str(error)[:200]}") from error
    return network
