"""Runs an ONNX graph for a reader: describes the image input, and prepares pictures for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from medtest.core.cases import Image
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene, SeenEntity
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.detectors.boxes import BoxFit, Detections, fractions, letterboxed, stretched
from medtest.readers.pictures.detectors.coco import COCO_80, pool_class, read_names
from medtest.systems.adapters.onnx import DTYPES, open_session
from medtest.systems.files import file_mistakes, user_path

_MISSING: Final = "readers of ONNX graphs need onnxruntime: pip install 'medtest[onnx]'"
_INTEGERS: Final = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}


class OnnxReaderSettings(PictureSettings):
    """Settings of an ONNX graph that detects objects in pictures.

    Attributes:
        path: The graph's file.
        names: A text file with one class per line, in the network's order; "" for COCO's 80.
        size: Height and width of the graph's input; null to use those stored in the graph.
        resize: How a picture is resized: ``letterbox`` (proportions kept, the rest grey 114, as in the training of YOLO
            networks) or ``stretch``.
        order: Order of the channels, ``rgb`` or ``bgr``.
        scale: Divisor for levels 0 to 255: 1 or 255.
        mean: Values then subtracted from each channel, in the network's order.
        std: Divisors applied after that.
        score: Minimum score of an object.
        most: Maximum number of objects per picture; those with the highest scores are kept.
    """

    path: str = Field(default="", json_schema_extra=TRUSTED)
    names: str = Field(default="", json_schema_extra=TRUSTED)
    size: list[int] | None = None
    resize: Literal["letterbox", "stretch"] = "letterbox"
    order: Literal["rgb", "bgr"] = "rgb"
    scale: float = Field(default=255.0, gt=0, allow_inf_nan=False)
    mean: list[float] = [0.0, 0.0, 0.0]
    std: list[float] = [1.0, 1.0, 1.0]
    score: float = Field(default=0.3, ge=0, le=1)
    most: int = Field(default=100, ge=1, le=1000)

    @field_validator("size")
    @classmethod
    def _two_sides(cls, size: list[int] | None) -> list[int] | None:
        if size is not None and (len(size) != 2 or not all(32 <= side <= 4096 for side in size)):
            raise ValueError("height and width, from 32 to 4096 pixels")
        return size

    @field_validator("mean", "std")
    @classmethod
    def _three_channels(cls, values: list[float]) -> list[float]:
        if len(values) != 3 or not all(np.isfinite(values)):
            raise ValueError("three numbers, one a channel")
        return values

    @field_validator("std")
    @classmethod
    def _nothing_by_zero(cls, values: list[float]) -> list[float]:
        if not all(value > 0 for value in values):
            raise ValueError("numbers above 0")
        return values


@dataclass(frozen=True, kw_only=True)
class GraphAnswer:
    """Output of a graph for one picture.

    Attributes:
        outputs: Outputs by name, without the batch axis.
        fit: How the picture was resized.
        size: Height and width of the graph's input.
    """

    outputs: dict[str, NDArray[Any]]
    fit: BoxFit
    size: tuple[int, int]


class GraphReader(PictureReader):
    """A reader whose network is an ONNX graph with one image input of four axes, channels first.

    A graph may have a second input for the original picture sizes (integers, N×2, width before height, as in exports of
    RT-DETR): its boxes are then in pixels of the picture. A fixed batch size is respected.

    Attributes:
        one_by_one: Whether the graph receives one picture at a time, so that outputs need no batch axis.
    """

    Settings = OnnxReaderSettings
    settings: OnnxReaderSettings
    one_by_one: ClassVar[bool] = False
    _session: Any = None
    _sizes: tuple[str, Any] | None = None
    _size: tuple[int, int] = (0, 0)
    _batch: int | None = None

    def __init__(self, name: str, settings: OnnxReaderSettings) -> None:
        super().__init__(name, settings)
        self._input, self._dtype = "", "float32"

    def weights(self) -> Sequence[Path]:
        """Return the files of the graph and of its class names."""
        named = (self.settings.path, self.settings.names)
        return [user_path(path) for path in named if path and user_path(path).is_file()]

    def card_beside(self) -> Path | None:
        """Return the path of the graph with the suffix ``.card.json``."""
        return user_path(self.settings.path).with_suffix(SUFFIX) if self.settings.path else None

    def check(self) -> list[Mistake]:
        """Return the mistakes in the files, or that onnxruntime is missing."""
        own, where = self.settings, self.name
        mistakes = file_mistakes(own.path, where=where, key="path", suffixes=(".onnx",))
        if own.names:
            mistakes += file_mistakes(own.names, where=where, key="names")
        if find_spec("onnxruntime") is None:
            mistakes.append(Mistake(where=where, found="onnxruntime is not installed", fix=_MISSING))
        return mistakes or super().check()

    def class_names(self) -> tuple[str, ...]:
        """Return the network's classes in order."""
        return read_names(user_path(self.settings.names) if self.settings.names else COCO_80)

    def open(self, *, device: str, threads: int) -> None:
        """Load the graph.

        Raises:
            MedtestError: It cannot be run, or its input is not a picture.
        """
        path = user_path(self.settings.path)
        self._session = open_session(path, device=device, threads=threads, missing=_MISSING)
        inputs = self._session.get_inputs()
        images = [graph_input for graph_input in inputs if len(graph_input.shape) == 4]
        others = [graph_input for graph_input in inputs if len(graph_input.shape) != 4]
        shapes = ", ".join(f"{graph_input.name} {graph_input.shape} {graph_input.type}" for graph_input in inputs)
        sizes = [
            graph_input
            for graph_input in others
            if len(graph_input.shape) == 2 and graph_input.type in _INTEGERS and graph_input.shape[1] in (2, None)
        ]
        if len(images) != 1 or len(others) > 1 or others != sizes:
            raise MedtestError(f"{path.name}: one image input is expected (and one of sizes); the graph takes {shapes}")
        only = images[0]
        if only.type not in DTYPES or (isinstance(only.shape[1], int) and only.shape[1] != 3):
            raise MedtestError(f"{path.name}: an input of N×3×height×width is expected; the graph takes {shapes}")
        self._input, self._dtype = only.name, DTYPES[only.type]
        self._sizes = (others[0].name, _INTEGERS[others[0].type]) if others else None
        self._batch = only.shape[0] if isinstance(only.shape[0], int) and only.shape[0] > 0 else None
        self._size = self._size_of(only.shape[2:], path.name)

    def _size_of(self, sides: Sequence[Any], name: str) -> tuple[int, int]:
        size = self.settings.size
        fixed = all(isinstance(side, int) and side > 0 for side in sides)
        if fixed and size is not None and [*sides] != [*size]:
            raise MedtestError(f"{name}: takes pictures of {sides[0]}×{sides[1]}, not size={size}")
        if not fixed and size is None:
            raise MedtestError(f"{name}: does not state its size; set size=[416,416]")
        chosen = size if size is not None else sides
        return int(chosen[0]), int(chosen[1])

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the scene that the network detects in each picture.

        Raises:
            BadOutput: An output does not have the expected form.
        """
        return [self._scene(answer) for answer in self.answers(images)]

    @abstractmethod
    def _scene(self, answer: GraphAnswer) -> Scene:
        """Return the objects and relations above the minimum scores."""

    def close(self) -> None:
        """Release the session."""
        self._session = None

    def answers(self, images: Sequence[Image]) -> list[GraphAnswer]:
        """Return the output of the graph for each picture.

        Args:
            images: uint8 H×W×3 RGB.

        Raises:
            MedtestError: The reader is not open, or an output has no batch axis.
        """
        if self._session is None:
            raise MedtestError(f"{self.name} is not open")
        names = self.output_names
        fit = letterboxed if self.settings.resize == "letterbox" else stretched
        answers: list[GraphAnswer] = []
        most = 1 if self.one_by_one else self._batch or max(len(images), 1)
        for start in range(0, len(images), most):
            group = [fit(image, self._size) for image in images[start : start + most]]
            padded = [*group, *([group[-1]] * ((self._batch or len(group)) - len(group)))]
            feeds = {self._input: self._encoded([shown for shown, _ in padded])}
            if self._sizes is not None:
                feeds[self._sizes[0]] = np.array(
                    [[box_fit.width, box_fit.height] for _, box_fit in padded], self._sizes[1]
                )
            arrays = [np.asarray(array) for array in self._session.run(None, feeds)]
            if self.one_by_one:
                answers.append(
                    GraphAnswer(outputs=dict(zip(names, arrays, strict=True)), fit=group[0][1], size=self._size)
                )
                continue
            if any(array.ndim < 1 or len(array) != len(padded) for array in arrays):
                shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(names, arrays, strict=True))
                raise MedtestError(f"{self.name}: outputs whose first axis is that of pictures are expected: {shapes}")
            for index, (_, box_fit) in enumerate(group):
                outputs = {name: array[index] for name, array in zip(names, arrays, strict=True)}
                answers.append(GraphAnswer(outputs=outputs, fit=box_fit, size=self._size))
        return answers

    def _encoded(self, shown: Sequence[Image]) -> NDArray[Any]:
        own = self.settings
        stacked = np.stack(shown)
        stacked = stacked[..., ::-1] if own.order == "bgr" else stacked
        if self._dtype == "uint8":
            return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
        mean, std = np.array(own.mean, np.float32), np.array(own.std, np.float32)
        levels = (stacked.astype(np.float32) / np.float32(own.scale) - mean) / std
        return np.ascontiguousarray(levels.transpose(0, 3, 1, 2).astype(self._dtype))

    @property
    def output_names(self) -> list[str]:
        """Names of the graph's outputs, available after opening."""
        return [str(output.name) for output in self._session.get_outputs()]

    @property
    def told_sizes(self) -> bool:
        """Whether the graph receives the original picture sizes."""
        return self._sizes is not None

    def in_fractions(self, boxes: NDArray[Any], answer: GraphAnswer) -> NDArray[np.float64]:
        """Return boxes as fractions of the picture.

        Args:
            boxes: K×4 in pixels of the picture if the graph receives its size, else of the graph's input.
            answer: The output that contains them.
        """
        fit = answer.fit
        own = BoxFit(fit.height, fit.width, 1.0, 1.0) if self.told_sizes else fit
        return fractions(np.asarray(boxes, np.float64), own)


def entities_of(detections: Detections, names: Sequence[str]) -> tuple[SeenEntity, ...]:
    """Return detections as entities, with class names as in pools.

    Args:
        detections: The detections, with boxes as fractions.
        names: The network's classes.
    """
    placed = zip(detections.boxes.tolist(), detections.scores.tolist(), detections.labels.tolist(), strict=True)
    return tuple(
        SeenEntity(name=pool_class(names[label]), box=(box[0], box[1], box[2], box[3]), score=min(max(score, 0.0), 1.0))
        for box, score, label in placed
    )
