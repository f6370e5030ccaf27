"""An object detector as an ONNX graph: YOLOX, or any export that outputs boxes, scores and classes itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.errors import BadOutput
from medtest.core.scenes import Scene, Tells
from medtest.readers.pictures.detectors.boxes import Detections, above_score, suppressed, yolox_boxes
from medtest.readers.pictures.detectors.coco import pool_class
from medtest.readers.pictures.graph import GraphAnswer, GraphReader, OnnxReaderSettings, entities_of
from medtest.readers.pictures.spatial import PREDICATES, triples_of

_ROW: Final = 6
"""Row length of exports with a single output: left, top, right, bottom, score, class."""


class DetectorSettings(OnnxReaderSettings):
    """Settings of :class:`Detector`; see :class:`medtest.readers.pictures.graph.OnnxReaderSettings`.

    The defaults are those of YOLOX (channels in the order blue, green, red, levels 0 to 255 unchanged).

    Attributes:
        layout: Format of the output. ``yolox``: cells × (dx, dy, dw, dh, objectness, classes) at strides 8, 16, 32;
            ``yolox_decoded``: the same with boxes in pixels (``decode_in_inference``); ``boxes``: objects, as three
            outputs (boxes K×4, scores K or K×classes, classes K) or one (K×6: box, score, class).
        boxes: For ``layout: boxes``: whether boxes are in ``pixels`` or ``fractions`` of the graph's input, or of the
            picture if the graph receives the picture's size.
        overlap: Intersection over union above which, of two objects of a class, the one with the lower score is
            dropped; 1 keeps all.
    """

    layout: Literal["yolox", "yolox_decoded", "boxes"] = "yolox"
    boxes: Literal["pixels", "fractions"] = "pixels"
    order: Literal["rgb", "bgr"] = "bgr"
    scale: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    overlap: float = Field(default=0.45, gt=0, le=1)


class Detector(GraphReader):
    """Detects objects of the detector's classes with boxes, and relations that follow from boxes.

    It tells no attributes. Its counts are the numbers of detected objects.
    """

    Settings = DetectorSettings
    settings: DetectorSettings
    _names: tuple[str, ...] = ()
    _tells = Tells()

    def open(self, *, device: str, threads: int) -> None:
        """Load graph and class names; see the base class."""
        super().open(device=device, threads=threads)
        self._names = self.class_names()
        classes = frozenset(pool_class(name) for name in self._names)
        self._tells = Tells(classes=classes, predicates=frozenset(PREDICATES), attributes=frozenset())

    def _scene(self, answer: GraphAnswer) -> Scene:
        own = self.settings
        detections = self._detections(answer) if own.layout == "boxes" else self._of_cells(answer)
        if len(detections.labels) and not 0 <= int(detections.labels.min()) <= int(detections.labels.max()) < len(
            self._names
        ):
            raise BadOutput(
                f"gave class {int(detections.labels.max())}; the names are {len(self._names)}: see names=FILE"
            )
        entities = entities_of(suppressed(detections, own.overlap, own.most), self._names)
        aspect = answer.fit.width / answer.fit.height
        return Scene(entities=entities, triples=triples_of(entities, aspect), tells=self._tells)

    def _of_cells(self, answer: GraphAnswer) -> Detections:
        (output,) = answer.outputs.values() if len(answer.outputs) == 1 else _refuse(answer, "one output of cells")
        boxes, scores = yolox_boxes(output, answer.size, decoded=self.settings.layout == "yolox_decoded")
        if scores.shape[1] != len(self._names):
            raise BadOutput(f"gave scores of {scores.shape[1]} classes; the names are {len(self._names)}")
        detections = above_score(boxes, scores, self.settings.score)
        return Detections(
            boxes=self.in_fractions(detections.boxes, answer), scores=detections.scores, labels=detections.labels
        )

    def _detections(self, answer: GraphAnswer) -> Detections:
        boxes, scores, labels = _parts(answer)
        if not (np.isfinite(boxes).all() and np.isfinite(scores).all()):
            raise BadOutput("gave boxes or scores that are not finite")
        selected = np.flatnonzero(scores >= self.settings.score)
        selected = selected[labels[selected] >= 0]  # exports pad to a fixed number of objects with -1
        placed = boxes[selected]
        if self.settings.boxes == "fractions":
            height, width = answer.size if not self.told_sizes else (answer.fit.height, answer.fit.width)
            placed = placed * np.array([width, height, width, height], np.float64)
        return Detections(boxes=self.in_fractions(placed, answer), scores=scores[selected], labels=labels[selected])


def _parts(answer: GraphAnswer) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return boxes K×4, scores K and classes K of outputs in any order, identified by names and shapes."""
    outputs = {name: np.asarray(output, np.float64) for name, output in answer.outputs.items()}
    if len(outputs) == 1:
        (rows,) = outputs.values()
        if rows.ndim != 2 or rows.shape[1] != _ROW:
            _refuse(answer, "rows of left, top, right, bottom, score, class")
        return rows[:, :4], rows[:, 4], _class_indices(rows[:, 5])
    boxes = [output for output in outputs.values() if output.ndim == 2 and output.shape[1] == 4]
    if len(boxes) > 1:
        boxes = [
            output
            for name, output in outputs.items()
            if "box" in name.lower() and output.ndim == 2 and output.shape[1] == 4
        ]
    if len(boxes) != 1:
        _refuse(answer, "one output of boxes K×4")
    rest = {name: output for name, output in outputs.items() if output is not boxes[0] and len(output) == len(boxes[0])}
    tables = [output for output in rest.values() if output.ndim == 2]
    if len(tables) == 1 and len(rest) == 1:
        best = tables[0].argmax(axis=1)
        return boxes[0], tables[0][np.arange(len(best)), best], best.astype(np.int64)
    labels = [name for name, output in rest.items() if output.ndim == 1 and _names(name, ("label", "class"))]
    scores = [name for name, output in rest.items() if output.ndim == 1 and _names(name, ("score", "conf"))]
    if len(labels) != 1 or len(scores) != 1:
        _refuse(answer, "outputs called boxes, scores and labels")
    return boxes[0], rest[scores[0]], _class_indices(rest[labels[0]])


def _names(name: str, words: Sequence[str]) -> bool:
    return any(word in name.lower() for word in words)


def _class_indices(labels: NDArray[np.float64]) -> NDArray[np.int64]:
    if not np.isfinite(labels).all() or (np.abs(labels) > 1e9).any():
        raise BadOutput("gave classes that are not numbers")
    return np.rint(labels).astype(np.int64)


def _refuse(answer: GraphAnswer, expected: str) -> Any:
    """Report the expected output and the actual one.

    Raises:
        BadOutput: Always.
    """
    shapes = ", ".join(f"{name} {output.shape}" for name, output in answer.outputs.items())
    raise BadOutput(f"gave {shapes}; {expected} is expected")
