"""Inception-v3 of 2015-12-05 from the user's file: the network that FID, IS and KID are based on.

Accepted files are the conversions to torch published by pytorch-fid and torch-fidelity (a ``state_dict``, .pth or
.safetensors with the same tensors and names), and the TorchScript file published by StyleGAN. Features are the 2,048 of
pool 3; scores are the 1,008 without the bias of the last layer, as in T. Salimans et al. Pictures are resized to
299×299 as in TensorFlow 1; otherwise metrics would not be comparable with published ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import MedtestError, Mistake
from medtest.readers.embeddings.base import Embedded, Embedder, FigureNames
from medtest.systems.checkpoints.archives import check_archive
from medtest.systems.checkpoints.checkpoint import load_strictly, read_state
from medtest.systems.files import cached_sha256, file_mistakes, user_path

if TYPE_CHECKING:
    from torch import Tensor, nn

SIDE: Final = 299
CLASSES: Final = 1008
FEATURES: Final = 2048
SUFFIXES: Final = (".pth", ".pt", ".safetensors")
_TINY: Final = 1e-30


class Inception(Embedder):
    """The Inception-v3 network.

    Args:
        weights: The path of its file.
    """

    name = "inception"
    figures: ClassVar[FigureNames] = FigureNames(frechet="FID", kernel="KID", score="IS")
    revision: ClassVar[int] = 1

    def __init__(self, weights: str) -> None:
        self._path = weights
        self._network: Any = None
        self._head: Tensor | None = None
        self._device = "cpu"

    def check(self) -> list[Mistake]:
        """Return the mistakes in the file's path."""
        return file_mistakes(self._path, where="figures", key="inception", suffixes=SUFFIXES)

    def fingerprint(self) -> Mapping[str, Any]:
        """Return the SHA-256 of the file."""
        return {"net": self.name, "revision": self.revision, "weights": cached_sha256(user_path(self._path))}

    def open(self, *, device: str, threads: int) -> None:
        """Load the file.

        Raises:
            MedtestError: The file contains another network.
        """
        torch.set_num_threads(max(1, threads))
        path = user_path(self._path)
        self._device = device
        if _is_script(path):
            self._network = _script(path).to(device).eval()
            return
        network: Any = _network()
        load_strictly(network, read_state(path), name="Inception-v3 (2015-12-05)", file=path.name)
        self._head = network.fc.weight.detach().to(device)
        network.fc = torch.nn.Identity()
        # channels last: 1.6 times as fast on a processor, equal but for rounding
        self._network = network.to(device, memory_format=torch.channels_last).eval()

    def embed(self, images: Sequence[Image]) -> Embedded:
        """Return 2,048 features and 1,008 scores for each picture."""
        with torch.inference_mode():
            if self._head is None:
                return self._of_script(images)
            pixels = torch.cat([resized(image) for image in images]).to(self._device)
            inputs = ((pixels - 128) / 128).contiguous(memory_format=torch.channels_last)
            features = self._network(inputs)
            return Embedded(_numpy(features), _numpy(features @ self._head.T))

    def _of_script(self, images: Sequence[Image]) -> Embedded:
        features, scores = [], []
        for image in images:  # it resizes internally and takes pictures of a single size
            pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None].to(self._device)
            features.append(self._network(pixels, return_features=True))
            chances = self._network(pixels, no_output_bias=True)
            scores.append(chances.clamp_min(_TINY).log())  # softmax of these gives the probabilities again
        return Embedded(_numpy(torch.cat(features)), _numpy(torch.cat(scores)))


def resized(image: Image) -> Tensor:
    """Return a picture resized to 299×299 like TensorFlow 1's bilinear resize, float32 1×3×299×299 in [0, 255].

    The sampling grid starts at the corner of the first pixel instead of its centre, and there is no antialiasing.

    Args:
        image: uint8 H×W×3 RGB.
    """
    pixels = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).to(torch.float32)
    for axis in (1, 2):
        length = pixels.shape[axis]
        places = torch.arange(SIDE, dtype=torch.float32) * (length / SIDE)
        low = places.floor().to(torch.int64).clamp(max=length - 1)
        high = (low + 1).clamp(max=length - 1)
        share = (places - low).reshape((-1, 1) if axis == 1 else (-1,))
        first, second = pixels.index_select(axis, low), pixels.index_select(axis, high)
        pixels = first + (second - first) * share
    return pixels[None]


def _numpy(rows: Tensor) -> Any:
    return rows.float().cpu().numpy()


def _is_script(path: Path) -> bool:
    """Return True if a file is TorchScript: an archive that contains code."""
    import zipfile

    check_archive(path)
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/code/" in name for name in archive.namelist())


def _script(path: Path) -> nn.Module:
    try:
        network: nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
        blank = torch.zeros(1, 3, SIDE, SIDE, dtype=torch.uint8)
        shapes = network(blank, return_features=True).shape, network(blank, no_output_bias=True).shape
    except Exception as error:
        raise MedtestError(f"{path.name}: not Inception-v3 as TorchScript: {str(error)[:200]}") from error
    if shapes != ((1, FEATURES), (1, CLASSES)):
        raise MedtestError(f"{path.name}: gives {shapes[0][-1]} features and {shapes[1][-1]} classes, no Inception-v3")
    return network


def _network() -> nn.Module:
    """Return the network without weights: torchvision's architecture with TensorFlow's pooling."""
    from torch.nn import functional
    from torchvision.models import inception

    def mean(x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)

    def most(x: Tensor) -> Tensor:
        return functional.max_pool2d(x, 3, stride=1, padding=1)

    def pooling(block: type[Any]) -> type[Any]:
        class Pooling(block):  # type: ignore[misc]
            pool = staticmethod(mean)

            def _forward(self, x: Tensor) -> list[Tensor]:
                return [*super()._forward(x)[:-1], self.branch_pool(self.pool(x))]

        return Pooling

    blocks = [
        inception.BasicConv2d,
        pooling(inception.InceptionA),
        inception.InceptionB,
        pooling(inception.InceptionC),
        inception.InceptionD,
        pooling(inception.InceptionE),
        inception.InceptionAux,
    ]
    network: Any = inception.Inception3(
        num_classes=CLASSES, aux_logits=False, transform_input=False, inception_blocks=blocks, init_weights=False
    )
    network.Mixed_7c.pool = most
    module: nn.Module = network
    return module
