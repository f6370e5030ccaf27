"""medtest's classification networks as systems under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.phantoms.classes import CAPSULE, CHEST, DERMOSCOPY, FUNDUS
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.inputs import ATTNMEL, InputKind
from medtest.systems.checkpoints.network import SUFFIXES
from medtest.systems.classification.crops import middle, shorter_side, stretched, ten_crops
from medtest.systems.classification.network import ClassificationNetwork, ClassifierSettings
from medtest.systems.pytorch import pixels as of_pixels
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor, nn

    from medtest.systems.checkpoints.weights import WeightsInfo
    from medtest.systems.classification.networks.agdn import AGDN
    from medtest.systems.classification.networks.chexnet import CheXNet


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


SHARE = 0.8
"""Side of the first square crop, relative to the image's shorter side."""
RESIZED = 256 / 224
"""Side after resizing, relative to the crop."""


class AttnMelSettings(ClassifierSettings):
    """Settings of AttnMel.

    Attributes:
        attention: Conversion of local scores to weights, ``sigmoid`` or ``softmax``. A published checkpoint does not
            record which one was used in training, and answers with the other are wrong. Null: sigmoid, as in the
            authors' commands, or the value in weights of ``medtest train``.
        statistics: Data set whose mean and standard deviation normalise images, ``isic2016`` or ``isic2017``: the
            checkpoint's training data.
    """

    attention: Literal["sigmoid", "softmax"] | None = None
    statistics: Literal["isic2016", "isic2017"] = "isic2016"


class AttnMelSystem(ClassificationNetwork):
    """AttnMel (Yan et al., IPMI 2019), compact or with published weights.

    Official input: the central square with 0.8 of the image's shorter side, resized to 256×256 (bilinear, antialiased,
    as in Pillow), of which the central 224×224 are cropped; mean and standard deviation of ISIC 2016 or 2017. Answer:
    the softmax of two logits, benign and melanoma. The two attention maps are not used.
    """

    Settings = AttnMelSettings
    settings: AttnMelSettings
    family = "attnmel"
    published = ("attnmel",)
    own_classes = DERMOSCOPY
    answer_output = 0
    crops_image = True

    def _load(self) -> tuple[nn.Module, WeightsInfo | None]:
        network, info = super()._load()
        if self.settings.attention is not None:
            network.attend(self.settings.attention)  # type: ignore[operator]
        return network, info

    def _official(self, image: Image) -> NDArray[np.uint8]:
        square = middle(image, max(1, int(SHARE * min(image.shape[:2]))))
        side = round(self._size * RESIZED)
        return middle(stretched(square, side, side), self._size)

    def _official_pixels(self, pixels: Tensor) -> Tensor:
        square = of_pixels.middle(pixels, max(1, int(SHARE * min(pixels.shape[2:]))))
        side = round(self._size * RESIZED)
        return of_pixels.middle(of_pixels.resized(square, (side, side)), self._size)

    @property
    def input_kind(self) -> InputKind:
        """Input format of the training data set."""
        return ATTNMEL[self.settings.statistics]


CHEXNET_SMALLEST = 32
"""Minimum side; smaller images vanish before the last block."""
TEN = 10


class CheXNetSettings(ClassifierSettings):
    """Settings of CheXNet.

    Attributes:
        crops: Number of crops: ``10`` (corners and centre, also mirrored) with averaged probabilities, regardless of
            ``input`` is, or ``1``. Null: ten as in the authors' tests, with a published checkpoint and ``input:
            official``; one with the compact network or ``as_is``.
    """

    crops: Literal[1, 10] | None = None


class CheXNetSystem(ClassificationNetwork):
    """CheXNet (Rajpurkar et al., 2017; the best-known reproduction), compact or with published weights.

    Official input: shorter side resized to 256 (bilinear, antialiased, as in Pillow); the four corners of 224×224, the
    centre, and the same of the mirrored image (``crops: 1``: the centre only); mean and standard deviation of ImageNet.
    Answer: 14 probabilities, averaged over the crops; the sigmoid is inside the network. Several findings may be true.
    """

    Settings = CheXNetSettings
    settings: CheXNetSettings
    family = "chexnet"
    published = ("chexnet",)
    own_classes = CHEST
    crops_image = True
    answer_form = "probabilities"

    @property
    def crops(self) -> int:
        """Number of crops per image."""
        if self.settings.crops is not None:
            return int(self.settings.crops)
        return TEN if self.is_published and self.input == "official" else 1

    @property
    def largest_batch(self) -> int | None:
        """One image if its ten crops already form a batch."""
        return 1 if self.crops == TEN else None

    def fitted(self, image: Image) -> NDArray[np.uint8]:
        """Return an image at the network's input size, uncropped if ten crops follow."""
        return self._resized(image) if self.crops == TEN else super().fitted(image)

    def inputs(self, images: Sequence[Image]) -> Tensor:
        """Return normalised images, or ten crops per image, image by image."""
        crops = [crop for image in images for crop in ten_crops(image, self._size)] if self.crops == TEN else images
        return super().inputs(crops)

    def answers(self, outputs: Any, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return 14 probabilities per image, averaged over its crops."""
        scores = np.asarray(super().answers(outputs, images), np.float32)
        return list(scores.reshape(len(images), -1, scores.shape[1]).mean(axis=1) if self.crops == TEN else scores)

    def _resized(self, image: Image) -> NDArray[np.uint8]:
        return shorter_side(image, round(self._size * RESIZED))

    def _official(self, image: Image) -> NDArray[np.uint8]:
        return middle(self._resized(image), self._size)

    def _as_is(self, image: Image) -> NDArray[np.uint8]:
        accepted = self._takes(image.shape[0], image.shape[1])
        return super()._as_is(image) if accepted or self._own_side_only else self._official(image)

    def _takes(self, height: int, width: int) -> bool:
        return min(height, width) >= CHEXNET_SMALLEST

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the network's input size, uncropped if ten crops follow."""
        return self._resized_pixels(pixels) if self.crops == TEN else super().fitted_pixels(pixels)

    def label_logits(self, pixels: Tensor, *, multi: bool) -> Tensor:
        """Return the sigmoid's inputs; for ten crops, the logits of the mean of their probabilities."""
        crops = of_pixels.ten_crops(pixels, self._size) if self.crops == TEN else pixels
        network: CheXNet = self.network  # type: ignore[assignment]
        logits = exactly(self.forward(self.normalised(crops), network.logits))
        if self.crops != TEN:
            return logits
        return of_pixels.mean_odds(logits.reshape(len(pixels), TEN, -1))

    def _resized_pixels(self, pixels: Tensor) -> Tensor:
        return of_pixels.shorter_side(pixels, round(self._size * RESIZED))

    def _official_pixels(self, pixels: Tensor) -> Tensor:
        return of_pixels.middle(self._resized_pixels(pixels), self._size)

    def _as_is_pixels(self, pixels: Tensor) -> Tensor:
        accepted = self._takes(int(pixels.shape[2]), int(pixels.shape[3]))
        return super()._as_is_pixels(pixels) if accepted or self._own_side_only else self._official_pixels(pixels)


STRIDE = 8
"""Image sides must be multiples of this."""


class DSINetSystem(ClassificationNetwork):
    """DSI-Net (Zhu et al., IEEE TMI 2021), compact or with published weights: classes, and the lesion's mask.

    Official input: resized to 256×256 by PIL's antialiased bilinear filter, divided by 255 and not normalised further.
    The authors resize the shorter side and have square pictures only; others are stretched to the square here. With
    ``input: as_is`` a picture whose sides are multiples of 8 is not resized at all.

    Answer: the softmax of three logits (normal, vascular, inflammatory), and the softmax of the fine segmentation's two
    channels, whose second is the lesion, at the input's size; cut at 0.5, which equals the argmax. The coarse
    segmentation is not used. The authors evaluate masks only on images with a lesion.
    """

    family = "dsinet"
    published = ("dsinet",)
    published_size = 256
    own_classes = CAPSULE
    answer_output = 2

    def _takes(self, height: int, width: int) -> bool:
        # Half the training side still contains enough points for the network's comparisons.
        return not (height % STRIDE or width % STRIDE or min(height, width) < self._size // 2)

    def _example(self) -> Tensor:
        return torch.zeros(1, 3, 128, 128)

    def _masks(self, outputs: Any) -> Sequence[NDArray[np.float32]]:
        shares = torch.softmax(outputs[1].float(), dim=1)[:, 1]
        return list(np.asarray(shares.cpu().numpy(), np.float32))


INCEPTION_SMALLEST = 75
"""Minimum side; smaller images vanish before the last block."""


class InceptionDRSystem(ClassificationNetwork):
    """Inception-v3 with four grades (Xu et al., MedIA 2021), compact or with weights of that form.

    Official input: resized to 299×299, ignoring the aspect ratio (bilinear, antialiased, as in Pillow), no crop; mean
    and standard deviation of CIFAR-10, as in the published loader. On top of that, the network itself applies the
    conversion from ImageNet's normalisation to Inception's own. Under ``as_is`` the image may have any size from 75
    pixels. Answer: the softmax of four logits, grades 0 to 3 of Messidor. The published code takes the logistic
    function of each for its AUC; the order of classes, and so the decision, is the same.
    """

    family = "inceptionv3_dr"
    published = ("inceptionv3_dr",)
    published_size = 299
    # Its authors call theirs messidor_inceptionv3.pkl.
    suffixes = (*SUFFIXES, ".pkl")
    own_classes = FUNDUS

    def _takes(self, height: int, width: int) -> bool:
        return min(height, width) >= INCEPTION_SMALLEST

    def _example(self) -> Tensor:
        return torch.zeros(1, 3, 96, 96)
