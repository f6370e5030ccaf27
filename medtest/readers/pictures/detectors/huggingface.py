"""Detectors of Hugging Face transformers in a local folder, including those with fixed classes.

Nothing is downloaded and no code from a folder is run; only safetensors weights are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.deferred import torch
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene, Tells
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.detectors.boxes import Detections, suppressed
from medtest.readers.pictures.detectors.coco import pool_class
from medtest.readers.pictures.graph import entities_of
from medtest.readers.pictures.spatial import PREDICATES, triples_of
from medtest.systems.adapters.libraries.huggingface_folder import (
    checkpoint_mistakes,
    config_of,
    load_network,
    load_processor,
)
from medtest.systems.adapters.libraries.weights import read_json
from medtest.systems.files import user_path

WEIGHTS: Final = "model.safetensors"
_DESCRIPTIONS: Final = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
)
"""Files of a folder that, together with the weights, determine the result."""


class DetectorFolderSettings(PictureSettings):
    """Settings of a detector in a folder written by ``save_pretrained``.

    Attributes:
        path: The folder.
        score: Minimum score of an object.
        overlap: Intersection over union above which, of two objects of a class, the one with the lower score is
            dropped; 1 keeps all.
        most: Maximum number of objects per picture; those with the highest scores are kept.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    score: float = Field(default=0.5, ge=0, le=1)
    overlap: float = Field(default=1.0, gt=0, le=1)
    most: int = Field(default=100, ge=1, le=1000)


class FolderDetector(PictureReader):
    """A detector of transformers; the architecture is given by the folder's ``config.json``.

    Attributes:
        families: Supported values of ``model_type``.
        processor: Name of transformers' class that prepares the network's inputs.
        maker: Name of transformers' class that creates the network.
    """

    Settings: ClassVar[type[DetectorFolderSettings]] = DetectorFolderSettings
    settings: DetectorFolderSettings
    families: ClassVar[tuple[str, ...]]
    processor: ClassVar[str]
    maker: ClassVar[str]
    _network: Any = None
    _processor: Any = None
    _device = "cpu"
    _family = ""

    @property
    def folder(self) -> Path:
        """Path of the folder."""
        return user_path(self.settings.path)

    def weights(self) -> Sequence[Path]:
        """Return the weights and the files that describe them."""
        named = [self.folder / name for name in _DESCRIPTIONS]
        return [path for path in [*_tensors(self.folder), *named] if path.is_file()]

    def card_beside(self) -> Path | None:
        """Return the path of the card in the folder."""
        return self.folder / f"reader{SUFFIX}" if self.settings.path else None

    def check(self) -> list[Mistake]:
        """Return the mistakes in the folder."""
        allowed = f"a folder that save_pretrained wrote: config.json and {WEIGHTS}"
        path, families = self.settings.path, self.families
        mistakes = checkpoint_mistakes(path, where=self.name, allowed=allowed, families=families)
        return mistakes or super().check()

    def open(self, *, device: str, threads: int) -> None:
        """Load network and processor.

        Raises:
            MedtestError: transformers cannot load them from the folder, or weights are missing.
        """
        import transformers

        torch.set_num_threads(max(1, threads))
        self._device, self._family = device, str(config_of(self.folder)["model_type"])
        self._processor = load_processor(getattr(transformers, self.processor), self.folder)
        maker = getattr(transformers, self.maker)
        network = load_network(maker, self.folder, purpose="object detection", use_safetensors=True)
        self._network = network.eval().to(device)

    def close(self) -> None:
        """Release the network."""
        self._network = self._processor = None

    def scene(self, image: Image, detections: Detections, names: Sequence[str], tells: Tells) -> Scene:
        """Return detections as a scene.

        Args:
            image: The picture.
            detections: The detections, with boxes as fractions of the picture.
            names: The classes of the labels.
            tells: What the reader tells about the picture.

        Raises:
            BadOutput: Boxes or scores are not finite.
        """
        if not (np.isfinite(detections.boxes).all() and np.isfinite(detections.scores).all()):
            raise BadOutput("gave boxes or scores that are not finite")
        entities = entities_of(suppressed(detections, self.settings.overlap, self.settings.most), names)
        return Scene(entities=entities, triples=triples_of(entities, image.shape[1] / image.shape[0]), tells=tells)

    def ready(self) -> Any:
        """Return the network.

        Raises:
            MedtestError: The reader is not open.
        """
        if self._network is None:
            raise MedtestError(f"{self.name} is not open")
        return self._network


class ClassDetector(FolderDetector):
    """DETR, RT-DETR and similar detectors with the classes of their training (``id2label`` in ``config.json``)."""

    families: ClassVar[tuple[str, ...]] = (
        "conditional_detr",
        "d_fine",
        "dab-detr",
        "deformable_detr",
        "detr",
        "lw_detr",
        "rf_detr",
        "rt_detr",
        "rt_detr_v2",
        "yolos",
    )
    processor = "AutoImageProcessor"
    maker = "AutoModelForObjectDetection"

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the objects above the minimum score, with relations by boxes.

        Raises:
            BadOutput: Boxes or scores are not finite.
        """
        network = self.ready()
        labels = {int(index): str(name) for index, name in dict(network.config.id2label).items()}
        names = [labels.get(index, "n/a") for index in range(max(labels) + 1)]
        classes = frozenset(pool_class(name) for name in names if name.strip("/").lower() not in ("n/a", "na", ""))
        tells = Tells(classes=classes, predicates=frozenset(PREDICATES), attributes=frozenset())
        inputs = self._processor(images=list(images), return_tensors="pt", input_data_format="channels_last")
        with torch.inference_mode():
            output = network(**{key: value.to(self._device) for key, value in inputs.items() if key != "labels"})
        sizes = [image.shape[:2] for image in images]
        results = self._processor.post_process_object_detection(
            output, threshold=self.settings.score, target_sizes=torch.tensor(sizes, device=self._device)
        )
        return [
            self.scene(image, _with_valid_classes(detections_of(result, image), names, classes), names, tells)
            for image, result in zip(images, results, strict=True)
        ]


def _with_valid_classes(detections: Detections, names: Sequence[str], classes: frozenset[str]) -> Detections:
    """Return the detections with valid classes: COCO's numbering has gaps."""
    return detections.kept(
        np.flatnonzero([pool_class(names[label]) in classes for label in detections.labels.tolist()])
    )


def detections_of(result: Mapping[str, Any], image: Image) -> Detections:
    """Return a processor's detections, which are in pixels of the picture, as fractions of it."""
    height, width = image.shape[:2]
    boxes: NDArray[np.float64] = result["boxes"].cpu().double().numpy().reshape(-1, 4)
    return Detections(
        boxes=np.clip(boxes / np.array([width, height, width, height], np.float64), 0.0, 1.0),
        scores=result["scores"].cpu().double().numpy(),
        labels=result["labels"].cpu().long().numpy(),
    )


def _tensors(folder: Path) -> list[Path]:
    """Return the safetensors files, including an index and its shards; empty if there are none."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / f"{WEIGHTS}.index.json"
    if not index.is_file():
        return []
    try:
        shards = read_json(index)["weight_map"].values()
        named = sorted({Path(str(shard)).name for shard in shards})
    except (MedtestError, KeyError, AttributeError, TypeError):
        return []
    return [index, *(folder / name for name in named if name.endswith(".safetensors"))]
