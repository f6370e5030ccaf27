"""Detectors of Hugging Face transformers in a local folder, and those of fixed classes among them.

Nothing is downloaded and no code of a folder runs; weights are safetensors alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image
from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene, Tells
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.detectors.boxes import Detections, suppressed
from medtest.readers.pictures.detectors.coco import pool_class
from medtest.readers.pictures.graph import entities_of
from medtest.readers.pictures.spatial import PREDICATES, triples_of
from medtest.systems.adapters.libraries.hub_folder import read_json
from medtest.systems.adapters.libraries.huggingface_folder import config_of, leave_backbones_empty, offline
from medtest.systems.adapters.libraries.weights import pointer_mistakes
from medtest.systems.files import folder_mistakes, user_path

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
"""Files of a folder that decide, with the weights, what is seen."""
LOCAL: Final[Mapping[str, Any]] = {"local_files_only": True, "trust_remote_code": False}


class DetectorFolderSettings(PictureSettings):
    """Settings of a detector in a folder that ``save_pretrained`` wrote.

    Attributes:
        path: The folder.
        score: Least score of what is seen.
        overlap: Intersection over union above which of two things of a class the less sure one is none; 1 keeps all.
        most: Most things that are seen in a picture, the surest first.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    score: float = Field(default=0.5, ge=0, le=1)
    overlap: float = Field(default=1.0, gt=0, le=1)
    most: int = Field(default=100, ge=1, le=1000)


class FolderDetector(PictureReader):
    """A detector of transformers; which one it is says the folder's ``config.json``."""

    Settings: ClassVar[type[DetectorFolderSettings]] = DetectorFolderSettings
    settings: DetectorFolderSettings
    families: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._network: Any = None
        self._processor: Any = None
        self._device = "cpu"
        self._family = ""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return user_path(self.settings.path)

    def weights(self) -> Sequence[Path]:
        """Return the weights and what describes them."""
        named = [self.folder / name for name in _DESCRIPTIONS]
        return [path for path in [*_tensors(self.folder), *named] if path.is_file()]

    def card_beside(self) -> Path | None:
        """Return the file in its folder."""
        return self.folder / f"reader{SUFFIX}" if self.settings.path else None

    def check(self) -> list[Mistake]:
        """Return what is wrong with the folder."""
        where, typed = self.name, self.settings.path
        if found := folder_mistakes(typed, where=where, key="path"):
            return found
        try:
            config = config_of(self.folder)
        except MedtestError as error:
            return [Mistake(where=where, key="path", found=str(error), allowed="a folder that save_pretrained wrote")]
        family = str(config["model_type"])
        if "auto_map" in config:
            what = "a network whose code lies in its own folder (auto_map in config.json)"
            return [Mistake(where=where, key="path", found=what, allowed="networks that transformers has itself")]
        if family not in self.families:
            return [Mistake(where=where, key="path", found=f"model_type {family}", allowed=", ".join(self.families))]
        files = _tensors(self.folder)
        missing = [path.name for path in files if not path.is_file()]
        if not files or missing:
            what = f"{missing[0]} is missing" if missing else f"no {WEIGHTS} in {self.folder.name}"
            fix = "weights in other formats are not read: save the network again with safe_serialization=True"
            return [Mistake(where=where, key="path", found=what, allowed=WEIGHTS, fix=fix)]
        pointers = [one for path in files for one in pointer_mistakes(path, where=where, key="path")]
        return pointers or super().check()

    def open(self, *, device: str, threads: int) -> None:
        """Load network and processor.

        Raises:
            MedtestError: transformers cannot make them of the folder, or weights are missing.
        """
        import torch
        import transformers

        torch.set_num_threads(max(1, threads))
        folder, self._device = self.folder, device
        try:
            self._family = str(config_of(folder)["model_type"])
            with offline():
                self._processor = self.processor(transformers, folder)
                config = transformers.AutoConfig.from_pretrained(folder, **LOCAL)
                leave_backbones_empty(config)
                network, report = self.maker(transformers).from_pretrained(
                    folder, config=config, output_loading_info=True, use_safetensors=True, **LOCAL
                )
        except MedtestError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {str(error).strip()[:400]}"
            raise MedtestError(f"{folder.name}: transformers cannot make a detector of this folder: {what}") from error
        absent = sorted(str(one) for one in [*report["missing_keys"], *report["mismatched_keys"]])
        if absent:
            listed = ", ".join(absent[:6]) + (", …" if len(absent) > 6 else "")
            raise MedtestError(
                f"{folder.name}: {len(absent)} weights of {type(network).__name__} are not in the folder or have"
                f" another shape ({listed}); they would be drawn at random"
            )
        self._network = network.eval().to(device)

    def close(self) -> None:
        """Let go of the network."""
        self._network = self._processor = None

    @abstractmethod
    def processor(self, transformers: Any, folder: Path) -> Any:
        """Return what makes the network's inputs."""

    @abstractmethod
    def maker(self, transformers: Any) -> Any:
        """Return the class that makes the network."""

    def scene(self, image: Image, found: Detections, names: Sequence[str], tells: Tells) -> Scene:
        """Return what was found as a scene.

        Args:
            image: The picture.
            found: Boxes in fractions of it.
            names: The classes of its labels.
            tells: What the reader tells of it.

        Raises:
            BadOutput: Boxes or scores are not finite.
        """
        if not (np.isfinite(found.boxes).all() and np.isfinite(found.scores).all()):
            raise BadOutput("gave boxes or scores that are not finite")
        entities = entities_of(suppressed(found, self.settings.overlap, self.settings.most), names)
        return Scene(entities=entities, triples=triples_of(entities, image.shape[1] / image.shape[0]), tells=tells)

    def ready(self) -> Any:
        """Return the network.

        Raises:
            MedtestError: It is not opened.
        """
        if self._network is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        return self._network


class ClassDetector(FolderDetector):
    """DETR, RT-DETR and kin: detectors of the classes that they were trained on (``id2label`` of ``config.json``)."""

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

    def processor(self, transformers: Any, folder: Path) -> Any:
        """Return the folder's image processor."""
        return transformers.AutoImageProcessor.from_pretrained(folder, **LOCAL)

    def maker(self, transformers: Any) -> Any:
        """Return transformers' class for detection."""
        return transformers.AutoModelForObjectDetection

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return what is found above the score, with relations by boxes.

        Raises:
            BadOutput: Boxes or scores are not finite.
        """
        import torch

        network = self.ready()
        labels = {int(index): str(name) for index, name in dict(network.config.id2label).items()}
        names = [labels.get(index, "n/a") for index in range(max(labels) + 1)]
        known = frozenset(pool_class(name) for name in names if name.strip("/").lower() not in ("n/a", "na", ""))
        tells = Tells(classes=known, predicates=frozenset(PREDICATES), attributes=frozenset())
        made = self._processor(images=list(images), return_tensors="pt", input_data_format="channels_last")
        with torch.inference_mode():
            given = network(**{key: value.to(self._device) for key, value in made.items() if key != "labels"})
        sizes = [one.shape[:2] for one in images]
        found = self._processor.post_process_object_detection(
            given, threshold=self.settings.score, target_sizes=torch.tensor(sizes, device=self._device)
        )
        return [
            self.scene(image, _real(detections_of(one, image), names, known), names, tells)
            for image, one in zip(images, found, strict=True)
        ]


def _real(found: Detections, names: Sequence[str], known: frozenset[str]) -> Detections:
    """Return detections of classes that are some: COCO's numbering has gaps."""
    return found.kept(np.flatnonzero([pool_class(names[label]) in known for label in found.labels.tolist()]))


def detections_of(found: Mapping[str, Any], image: Image) -> Detections:
    """Return what a processor gives in pixels of a picture, as fractions of it."""
    height, width = image.shape[:2]
    boxes: NDArray[np.float64] = found["boxes"].cpu().double().numpy().reshape(-1, 4)
    return Detections(
        boxes=np.clip(boxes / np.array([width, height, width, height], np.float64), 0.0, 1.0),
        scores=found["scores"].cpu().double().numpy(),
        labels=found["labels"].cpu().long().numpy(),
    )


def _tensors(folder: Path) -> list[Path]:
    """Return the files of safetensors, an index's shards in its place; empty without any."""
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
