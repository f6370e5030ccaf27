"""Hugging Face transformers network in a local folder, for semantic segmentation or classification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from medtest.core.cases import Image, Json
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.systems.adapters.libraries.huggingface_folder import (
    PROCESSORS,
    checkpoint_mistakes,
    config_of,
    load_network,
    load_processor,
    weights_of,
)
from medtest.systems.adapters.libraries.huggingface_labels import (
    crops_images,
    label_changes,
    label_inputs,
    names_in,
    other_mistakes,
)
from medtest.systems.adapters.libraries.huggingface_pixels import scaled, sized
from medtest.systems.adapters.libraries.label_names import LabelSettings, NamedSystem
from medtest.systems.adapters.libraries.lesion import NetworkSettings, checked_scores
from medtest.systems.adapters.libraries.torch_network import TorchNetwork
from medtest.systems.adapters.tensors import GraphSettings, encode
from medtest.systems.base import RawAnswer
from medtest.systems.checkpoints.inputs import InputKind
from medtest.systems.files import cached_sha256, user_path
from medtest.systems.pytorch.field import CroppingSystem, Input
from medtest.systems.pytorch.pixels import log_odds, logits_of, resized
from medtest.systems.pytorch.torch_system import tensor_of

if TYPE_CHECKING:
    from torch import Tensor, nn

QUERIES: dict[str, tuple[int, int] | None] = {"mask2former": (384, 384), "maskformer": None}
"""Families with masks and a class per query, and the size at which transformers combines the two."""
ProcessedOutputs: TypeAlias = "tuple[Any, dict[str, Tensor]]"
"""The network's output and its inputs."""


class HuggingFaceSettings(NetworkSettings, LabelSettings):
    """Settings of a network of transformers.

    See :class:`~medtest.systems.adapters.libraries.lesion.NetworkSettings`, of which ``lesion``, ``threshold`` and
    ``activation`` apply to masks, and :class:`~medtest.systems.adapters.libraries.label_names.LabelSettings` for
    labels. ``size``, ``mean`` and ``std`` override the folder's image processor.

    Attributes:
        input: Labels only: ``official`` uses the folder's image processor; ``as_is`` resizes images of other sizes to
            its size and crops nothing; ``auto`` follows :mod:`medtest.systems.pytorch.field`.
    """

    input: Input = "auto"


class HuggingFace(CroppingSystem, NamedSystem, TorchNetwork):
    """SegFormer, UPerNet, BEiT, DPT, MobileViT, Mask2Former, MaskFormer and others, saved by ``save_pretrained``.

    Nothing is downloaded, and no code in the folder runs. Images go through the folder's own image processor (a centre
    crop is replaced by resizing to its size, because cropped areas would have no answer); without one they are
    normalised for ImageNet, at ``size`` or their own. As in the processors' ``post_process_semantic_segmentation``,
    scores are resized to the image (bilinear, corners not aligned) before classes are compared, so that with several
    classes a pixel is lesion exactly where transformers predicts it.

    For query networks (Mask2Former, MaskFormer) a class's score is the sum over queries of class probability times mask
    probability; the lesion's probability is its score's share relative to the strongest rival's, or with one class the
    score itself, at most 1.

    If seeds expect labels, the folder holds a network for image classification. Its classes are those of
    ``config.json``; several may be true if that states ``multi_label_classification``. Images go through the unchanged
    image processor, crop included.
    """

    tasks: ClassVar[tuple[str, ...]] = ("mask", "label")
    Settings: ClassVar[type[HuggingFaceSettings]] = HuggingFaceSettings
    settings: HuggingFaceSettings
    _processor: Any = None
    _family = ""

    def file_names(self) -> tuple[tuple[str, ...] | None, bool]:
        """Return the folder's class names of a classifier."""
        return names_in(user_path(self.settings.path))

    @property
    def crops_image(self) -> bool:  # type: ignore[override]
        """Whether the folder's image processor crops images, for labels."""
        settings = self.settings
        return self.task.labels and settings.size is None and crops_images(user_path(settings.path))

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the folder, and settings for the other kind of answer."""
        allowed = "a folder that save_pretrained wrote: config.json and model.safetensors"
        mistakes = checkpoint_mistakes(self.settings.path, where=self.name, allowed=allowed, pickles=True)
        return [*mistakes, *other_mistakes(self.settings, labels=self.task.labels, where=self.name)]

    def fingerprint(self) -> dict[str, Json]:
        """Return the SHA-256 of the weights, and of the descriptions of network and image processor."""
        folder = user_path(self.settings.path)
        files = ["config.json", *PROCESSORS]
        print_: dict[str, Json] = {
            name.removesuffix(".json") + "_sha256": cached_sha256(folder / name)
            for name in files
            if (folder / name).is_file()
        }
        print_["weights_sha256"] = [cached_sha256(path) for path in weights_of(folder)]
        return print_

    def notice(self) -> str:
        """Return a notice if there is no image processor or if prepared images are cropped again."""
        folder = user_path(self.settings.path)
        if not folder.is_dir() or any((folder / name).is_file() for name in PROCESSORS):
            return super().notice()
        return (
            f"{self.name}: no {PROCESSORS[0]} in the folder; images are normalised as ImageNet's, at "
            f"{'their own size' if self.settings.size is None else 'the size setting'}."
        )

    def load(self) -> nn.Module:
        """Return the network; see :class:`medtest.systems.adapters.libraries.torch_network.TorchNetwork`.

        Raises:
            MedtestError: transformers cannot create a network from the folder, or weights are missing.
        """
        folder = user_path(self.settings.path)
        if any((folder / name).is_file() for name in PROCESSORS):
            import transformers

            self._processor = load_processor(transformers.AutoImageProcessor, folder)
        network: nn.Module = self._load_network(folder)
        config: Any = network.config
        if self.task.labels:
            self.check_count(int(config.num_labels))
            return network
        if self._family in QUERIES and self.settings.activation not in ("auto", "none"):
            raise MedtestError(f"{self.name}: {self._family} has a fixed activation; leave activation at auto")
        names = {int(index): str(name) for index, name in dict(config.id2label).items()}
        self.has_classes([names.get(index, f"class {index}") for index in range(len(names))])
        return network

    def _load_network(self, folder: Path) -> Any:
        import transformers
        from transformers.models.auto import modeling_auto

        labels = self.task.labels
        makers: dict[str, Any] = (
            dict.fromkeys(
                modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, transformers.AutoModelForImageClassification
            )
            if labels
            else dict.fromkeys(QUERIES, transformers.AutoModelForUniversalSegmentation)
            | dict.fromkeys(
                modeling_auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES,
                transformers.AutoModelForSemanticSegmentation,
            )
        )
        self._family = str(config_of(folder)["model_type"])
        purpose = "image classification" if labels else "semantic segmentation"
        if self._family not in makers:
            raise MedtestError(
                f"{folder.name}: {self._family} is not a network for {purpose}; these are: {', '.join(sorted(makers))}"
            )
        return load_network(makers[self._family], folder, purpose=purpose, weights_only=True)

    def _changes(self) -> dict[str, Any]:
        """Return overrides of the processor's own settings."""
        settings, processor = self.settings, self._processor
        changes: dict[str, Any] = {}
        if settings.size is not None:
            changes |= {"do_resize": True, "size": {"height": settings.size[0], "width": settings.size[1]}}
        elif getattr(processor, "do_center_crop", False):
            changes |= {"do_resize": True, "size": dict(processor.crop_size)}
        if getattr(processor, "do_center_crop", False):
            changes["do_center_crop"] = False
        if settings.mean is not None or settings.std is not None:
            changes["do_normalize"] = True
            changes |= {"image_mean": settings.mean} if settings.mean is not None else {}
            changes |= {"image_std": settings.std} if settings.std is not None else {}
        return changes

    @property
    def input_kind(self) -> InputKind:
        """Input format of the image processor or the settings; ImageNet's by default."""
        settings, processor, plain = self.settings, self._processor, InputKind()
        mean = settings.mean or getattr(processor, "image_mean", None) or plain.mean
        return InputKind.of(mean, settings.std or getattr(processor, "image_std", None) or plain.std)

    def inputs(self, images: Sequence[Image]) -> dict[str, Tensor]:
        """Return images of one size after the image processor, or medtest's own preprocessing without one."""
        if self.task.labels:
            return {"pixel_values": label_inputs(images, self._processor, self.settings, self.input)}
        if self._processor is None:
            options = {key: getattr(self.settings, key) for key in ("mean", "std") if getattr(self.settings, key)}
            size = None if self.settings.size is None else (self.settings.size[0], self.settings.size[1])
            return {"pixel_values": torch.from_numpy(encode(images, GraphSettings(**options), size))}
        batch = self._processor(
            images=list(images), return_tensors="pt", input_data_format="channels_last", **self._changes()
        )
        return {key: batch[key] for key in ("pixel_values", "pixel_mask") if key in batch}

    def fitted_pixels(self, pixels: Tensor) -> Tensor:
        """Return pixels at the size of the image processor, or of medtest's preprocessing without one, not padded."""
        labels = self.task.labels
        size, changes = self._size_and_changes()
        if size is not None:
            pixels = resized(pixels, size, "bilinear" if labels else "area")
        return pixels if self._processor is None else sized(pixels, self._processor, changes)

    def _size_and_changes(self) -> tuple[tuple[int, int] | None, dict[str, Any]]:
        """Return the size to which medtest itself resizes images, and overrides for the image processor."""
        if self.task.labels:
            return label_changes(self._processor, self.settings, self.input)
        if self._processor is not None:
            return None, self._changes()
        return None if self.settings.size is None else (self.settings.size[0], self.settings.size[1]), {}

    def normalised(self, pixels: Tensor) -> dict[str, Tensor]:
        """Return pixels in the network's input format."""
        if self._processor is None:
            return {"pixel_values": super().normalised(pixels)}
        batch = scaled(pixels, self._processor, self._size_and_changes()[1])
        names = ("pixel_values",) if self.task.labels else ("pixel_values", "pixel_mask")
        return {key: batch[key] for key in names if key in batch}

    def forward(self, inputs: dict[str, Tensor]) -> ProcessedOutputs:
        """Return the network's output, with the inputs that distinguish a picture from its padding."""
        on_device = {key: value.to(self._device) for key, value in inputs.items()}
        return self.network(**on_device), on_device

    def scores(self, outputs: ProcessedOutputs) -> Tensor:
        """Return the classes' scores; for masks at the network's output size."""
        raw, _ = outputs
        if self.task.labels:
            return tensor_of(getattr(raw, "logits", None))
        query = self._family in QUERIES
        return super().scores(_of_queries(raw, QUERIES[self._family]) if query else getattr(raw, "logits", None))

    def answers(self, outputs: ProcessedOutputs, images: Sequence[Image]) -> Sequence[RawAnswer]:
        """Return one map per image at its size, or for labels one score per class and image."""
        if self.task.labels:
            return self.label_answers(self.scores(outputs), len(images))
        from torch.nn.functional import interpolate

        scores = checked_scores(self.scores(outputs), len(images), None)
        answers: list[RawAnswer] = []
        for index, image in enumerate(images):
            scores_of_image = _without_padding(scores[index : index + 1], outputs[1], index)
            whole = interpolate(scores_of_image, size=image.shape[:2], mode="bilinear", align_corners=False)
            answers.extend(self.probability(whole))
        return answers

    def lesion_logits(self, pixels: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return logits whose sigmoid is the lesion's probability at the images' size; see the base class."""
        from torch.nn.functional import interpolate

        outputs = self.forward(self.normalised(pixels))
        scores = checked_scores(self.scores(outputs), len(pixels), None)
        # Images of one size have the same padding.
        inner = _without_padding(scores, outputs[1], 0)
        return self.map_logits(interpolate(inner, size=shape, mode="bilinear", align_corners=False))

    def to_probability(self, scores: Tensor) -> Tensor:
        """Return the lesion's probability; scores of query networks are not logits."""
        if self._family not in QUERIES:
            return super().to_probability(scores)
        lesion, rival = self._shares(scores)
        return lesion.clamp(0, 1) if rival is None else lesion / (lesion + rival).clamp_min(1e-12)

    def to_logits(self, scores: Tensor) -> Tensor:
        """Return logits of the lesion's probability."""
        if self._family not in QUERIES:
            return super().to_logits(scores)
        lesion, rival = self._shares(scores)
        return logits_of(lesion, multi=True) if rival is None else log_odds(lesion, rival)

    def _shares(self, scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return scores of the lesion and of its strongest rival, None without one."""
        lesion = scores[:, list(self._classes)].amax(dim=1)
        others = [index for index in range(scores.shape[1]) if index not in self._classes]
        return lesion, None if not others or self.settings.activation == "none" else scores[:, others].amax(dim=1)


def _of_queries(outputs: Any, size: tuple[int, int] | None) -> Tensor:
    """Return classes' scores B×C×h×w from queries' classes and masks (Cheng et al., MaskFormer, section 3.4)."""
    from torch.nn.functional import interpolate

    masks, classes = outputs.masks_queries_logits, outputs.class_queries_logits
    if masks is None or classes is None:
        raise BadOutput("gave no masks or no classes of queries")
    if size is not None:
        masks = interpolate(masks, size=size, mode="bilinear", align_corners=False)
    return torch.einsum("bqc,bqhw->bchw", classes.softmax(dim=-1)[..., :-1], masks.sigmoid())


def _without_padding(scores: Tensor, inputs: dict[str, Tensor], index: int) -> Tensor:
    """Return scores B×C×h×w without the processor's padding, resized to the inputs if there was any."""
    from torch.nn.functional import interpolate

    size = (int(inputs["pixel_values"].shape[-2]), int(inputs["pixel_values"].shape[-1]))
    rows, columns = _unpadded(inputs.get("pixel_mask"), index, size)
    if (rows, columns) == size:
        return scores
    return interpolate(scores, size=size, mode="bilinear", align_corners=False)[..., :rows, :columns]


def _unpadded(mask: Tensor | None, index: int, size: tuple[int, int]) -> tuple[int, int]:
    """Return an image's rows and columns without the padding below and to the right."""
    if mask is None:
        return size
    real = np.asarray(mask[index].cpu()) > 0
    return int(real.any(axis=1).sum()), int(real.any(axis=0).sum())
