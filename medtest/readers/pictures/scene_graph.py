"""A scene graph network as an ONNX file: detects objects and relations, as exported by REACT and similar projects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.errors import BadOutput, MedtestError, Mistake
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene, SeenEntity, Tells, Triple
from medtest.language.captions.vocabulary import vg150
from medtest.readers.pictures.detectors.boxes import Detections
from medtest.readers.pictures.detectors.coco import pool_class, read_names
from medtest.readers.pictures.graph import GraphAnswer, GraphReader, OnnxReaderSettings, entities_of
from medtest.readers.pictures.spatial import PREDICATES, triples_of
from medtest.systems.files import file_mistakes, user_path

OUTPUTS: Final = {"boxes": 2, "labels": 1, "scores": 1, "pairs": 2, "predicate_scores": 2}
"""Outputs of a graph with their numbers of axes."""


class SceneGraphSettings(OnnxReaderSettings):
    """Settings of :class:`SceneGraph`; see :class:`medtest.readers.pictures.graph.OnnxReaderSettings`.

    Attributes:
        predicates: A text file with one predicate per line, in the network's order; "" for Visual Genome's 50.
            ``names`` defaults to Visual Genome's 150 classes here.
        background: Whether the network's class 0 and predicate 0 mean "none" and the files begin at 1, as in networks
            trained on Visual Genome.
        predicate_score: Minimum score of a relation, independent of the scores of its two objects.
        most_relations: Maximum number of relations per picture; those with the highest scores are kept.
    """

    predicates: str = Field(default="", json_schema_extra=TRUSTED)
    background: bool = True
    predicate_score: float = Field(default=0.1, ge=0, le=1)
    most_relations: int = Field(default=100, ge=0, le=1000)


class SceneGraph(GraphReader):
    """Detects objects and relations with one network; ``left of`` and ``right of``, which it lacks, follow from boxes.

    The graph takes one picture (1×3×H×W) and has these outputs, with or without a first axis of 1:

    ====================  =========  ========================================================================
    output                shape      content
    ====================  =========  ========================================================================
    ``boxes``             K×4        left, top, right, bottom, in pixels of the graph's input
    ``labels``            K          classes
    ``scores``            K          scores of the classes, 0 to 1
    ``pairs``             M×2        indices of subject and object among the K
    ``predicate_scores``  M×P        score of each predicate, 0 to 1
    ====================  =========  ========================================================================
    """

    Settings = SceneGraphSettings
    settings: SceneGraphSettings
    one_by_one = True
    _names: tuple[str, ...] = ()
    _predicates: tuple[str, ...] = ()
    _tells = Tells()

    def weights(self) -> Sequence[Path]:
        """Return the files of the graph, its class names and its predicates."""
        named = self.settings.predicates
        return [*super().weights(), *([user_path(named)] if named and user_path(named).is_file() else [])]

    def check(self) -> list[Mistake]:
        """Return the mistakes in the files, or that onnxruntime is missing."""
        named = self.settings.predicates
        return [*(file_mistakes(named, where=self.name, key="predicates") if named else []), *super().check()]

    def class_names(self) -> tuple[str, ...]:
        """Return the network's classes in order, without "none"."""
        return read_names(user_path(self.settings.names)) if self.settings.names else vg150().classes

    def open(self, *, device: str, threads: int) -> None:
        """Load the graph.

        Raises:
            MedtestError: It cannot be run, its input is not a picture, or an output is missing.
        """
        super().open(device=device, threads=threads)
        missing = sorted(set(OUTPUTS) - set(self.output_names))
        if missing:
            raise MedtestError(
                f"{self.name}: the graph gives {', '.join(self.output_names)}; it lacks {', '.join(missing)}"
            )
        named = self.settings.predicates
        predicates = read_names(user_path(named)) if named else vg150().predicates
        self._names = self.class_names()
        self._predicates = tuple(vg150().predicate_of(predicate) or predicate.lower() for predicate in predicates)
        classes = frozenset(pool_class(name) for name in self._names)
        all_predicates = frozenset(self._predicates) | frozenset(PREDICATES)
        self._tells = Tells(classes=classes, predicates=all_predicates, attributes=frozenset())

    def _scene(self, answer: GraphAnswer) -> Scene:
        own, first = self.settings, int(self.settings.background)
        outputs = {name: _with_axes(name, answer.outputs[name], axes) for name, axes in OUTPUTS.items()}
        boxes, labels, scores = outputs["boxes"], outputs["labels"] - first, outputs["scores"]
        pairs, table = outputs["pairs"], outputs["predicate_scores"][:, first:]
        object_count = len(boxes)
        if boxes.shape != (object_count, 4) or labels.shape != (object_count,) or scores.shape != (object_count,):
            raise BadOutput(f"gave {boxes.shape} boxes, {labels.shape} labels and {scores.shape} scores")
        if pairs.shape != (len(pairs), 2) or table.shape != (len(pairs), len(self._predicates)):
            raise BadOutput(f"gave {pairs.shape} pairs and {table.shape} scores of {len(self._predicates)} predicates")
        if pairs.size and not 0 <= pairs.min() <= pairs.max() < object_count:
            raise BadOutput(f"gave a pair of things that it does not have ({object_count} things)")
        if (labels >= len(self._names)).any():
            raise BadOutput(f"gave class {int(labels.max()) + first}; the names are {len(self._names)}")
        selected = np.flatnonzero((scores >= own.score) & (labels >= 0))
        selected = selected[np.argsort(-scores[selected], kind="stable")][: own.most]
        detections = Detections(boxes=self.in_fractions(boxes, answer), scores=scores, labels=labels.astype(np.int64))
        entities = entities_of(detections.kept(selected), self._names)
        places = {int(index): place for place, index in enumerate(selected)}
        triples = [*self._related(pairs.astype(np.int64), table, places), *self._sides(entities, answer)]
        ordered = sorted(set(triples), key=lambda triple: (triple.subject, triple.object, triple.predicate))
        return Scene(entities=entities, triples=tuple(ordered), tells=self._tells)

    def _related(
        self, pairs: NDArray[np.int64], table: NDArray[np.float64], places: dict[int, int]
    ) -> Iterator[Triple]:
        """Yield the relations with the highest scores between detected objects."""
        rows, columns = np.nonzero(table >= self.settings.predicate_score)
        order = np.argsort(-table[rows, columns], kind="stable")
        yielded = 0
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            subject, target = (places.get(int(end)) for end in pairs[row])
            if (
                subject is not None
                and target is not None
                and subject != target
                and yielded < self.settings.most_relations
            ):
                yielded += 1
                yield Triple(subject=subject, predicate=self._predicates[column], object=target)

    def _sides(self, entities: Sequence[SeenEntity], answer: GraphAnswer) -> Iterator[Triple]:
        """Yield the relations by boxes for which the network has no predicate."""
        own = frozenset(self._predicates)
        aspect = answer.fit.width / answer.fit.height
        yield from (triple for triple in triples_of(entities, aspect) if triple.predicate not in own)


def _with_axes(name: str, output: NDArray[Any], axes: int) -> NDArray[np.float64]:
    """Return an output without the batch axis of one picture.

    Raises:
        BadOutput: The number of axes is wrong, or values are not finite.
    """
    array = np.asarray(output, np.float64)
    array = array[0] if array.ndim == axes + 1 and len(array) == 1 else array
    if array.ndim != axes:
        raise BadOutput(f"gave {name} of shape {np.shape(output)}; {axes} axes are expected")
    if not np.isfinite(array).all():
        raise BadOutput(f"gave {name} that are not finite")
    return array
