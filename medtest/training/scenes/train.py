"""Training of the reader of drawn scenes, from the first step to its weights."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from medtest.core.errors import MedtestError
from medtest.core.scenes import SeenEntity
from medtest.phantoms.scenes import CLASSES, COLOURS, Placed
from medtest.readers.pictures.bundled.network import (
    SIDE,
    SceneNet,
    SceneNetInfo,
    load_scene_net,
    save_scene_net,
)
from medtest.readers.pictures.bundled.peaks import DetectedObject, detected_objects
from medtest.training.engine.initial import initialise
from medtest.training.engine.precision import autocast
from medtest.training.engine.prepared import PreparedTraining
from medtest.training.engine.start import weights_file
from medtest.training.engine.trainer import Evaluation, Training
from medtest.training.scenes.losses import scene_loss
from medtest.training.scenes.options import SceneOptions
from medtest.training.scenes.pictures import Pixels, SceneBatch, training_batch, training_picture
from medtest.training.scenes.scores import DetectionTally

if TYPE_CHECKING:
    from torch import Tensor, nn

FILE: Final = "bundled-scenes.safetensors"
WATCHED_SEED: Final = 77_000_001
"""Seed of the validation scenes, which are never trained on."""
_AT_ONCE: Final = 16
_SIGHTED: Final = 0.05
"""Lowest score of things considered in the search for a threshold."""
_THRESHOLDS: Final = tuple(round(0.1 + 0.02 * step, 2) for step in range(31))
_AS_GOOD: Final = 0.002
"""Among thresholds with F1 within this difference the highest is chosen: false detections cost more than misses."""
_AHEAD: Final = 3
"""Batches that each process prepares ahead."""


class SceneBatches:
    """Draws batches in separate processes, a few steps ahead.

    Args:
        seed: Seed of the batches, with the step's number.
        batch: Pictures of a batch.
        workers: Number of processes; 0 draws in this one.
    """

    def __init__(self, seed: int, batch: int, workers: int = 0) -> None:
        self._seed, self._batch, self._ahead = seed, batch, _AHEAD * workers
        context: Any = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread) if workers else None
        self._drawn: dict[int, Future[SceneBatch]] = {}

    def batch(self, step: int) -> SceneBatch:
        """Return the batch of a step, from 0."""
        if self._pool is None:
            return training_batch(self._seed, step, self._batch)
        self._drawn = {number: future for number, future in self._drawn.items() if number >= step}
        for number in range(step, step + 1 + self._ahead):
            if number not in self._drawn:
                self._drawn[number] = self._pool.submit(training_batch, self._seed, number, self._batch)
        return self._drawn.pop(step).result()

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def prepare_scenes(options: SceneOptions, out: Path) -> PreparedTraining:
    """Return the training of the network of drawn scenes; :data:`FILE` holds the threshold chosen in validation too.

    The score is F1 of things by class and position, times the share of right colours.
    """
    info = SceneNetInfo(classes=CLASSES, colours=COLOURS)
    network = SceneNet(info)
    initialise(network, options.seed)
    network.begin(options.prior)
    network.to(memory_format=torch.channels_last)
    if options.start_from is not None:
        _fill(network, info, weights_file(options.start_from))
    thresholds = [info.threshold]

    def write(state: Mapping[str, Tensor], note: str) -> None:
        save_scene_net(out / FILE, state, replace(info, threshold=thresholds[-1], note=f"{options.noted()}, {note}"))

    def loss(model: nn.Module, batch: SceneBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        images, targets = batch
        with autocast("fp32", options.device):
            return scene_loss(model(pixels_of(images, options.device)), targets)

    batches = SceneBatches(options.seed, options.batch, options.workers)
    training = Training(
        network=network,
        recipe=options.recipe(),
        validation=options.validation(),
        batch=batches.batch,
        loss=loss,
        evaluate=_evaluation(options, thresholds),
        write=write,
        steps=options.steps,
        steps_per_epoch=options.steps,
        seed=options.seed,
        device=options.device,
        identity=options.identity(),
    )
    return PreparedTraining(training=training, weights=out / FILE, name="scenes", params={}, close=batches.close)


def _fill(network: SceneNet, info: SceneNetInfo, path: Path) -> None:
    """Load the weights of an earlier training into the network.

    Raises:
        MedtestError: They are of another network, or of scenes with other classes or colours.
    """
    other, its = load_scene_net(path)
    if (its.classes, its.colours, its.widths, its.neck) != (info.classes, info.colours, info.widths, info.neck):
        raise MedtestError(
            f"{path.name}: these weights are of scenes with other classes or colours, or of other widths"
        )
    network.load_state_dict(other.state_dict())


def pixels_of(images: Pixels, device: str = "cpu") -> Tensor:
    """Convert pictures to the network's input.

    Args:
        images: uint8 B×S×S×3 RGB.
        device: "cpu" or "cuda:N".

    Returns:
        float32 B×3×S×S in [0, 1].
    """
    pixels = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float().div(255)
    # A sixth faster on CPUs, forward and backward.
    return pixels.contiguous(memory_format=torch.channels_last)


def _one_thread() -> None:
    import signal

    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    torch.set_num_threads(1)


def _evaluation(options: SceneOptions, thresholds: list[float]) -> Callable[[nn.Module], Evaluation]:
    """Return the evaluation on held-out scenes, which also records the best threshold."""
    cases: list[tuple[Pixels, list[Placed]]] = []

    def evaluate(network: nn.Module) -> Evaluation:
        if not cases:
            draws = (np.random.Generator(np.random.PCG64([WATCHED_SEED, k])) for k in range(options.watched))
            cases.extend(training_picture(rng) for rng in draws)
        detections: list[list[DetectedObject]] = []
        with torch.no_grad():
            for start in range(0, len(cases), _AT_ONCE):
                images = np.stack([picture for picture, _ in cases[start : start + _AT_ONCE]])
                detections += detected_objects(network(pixels_of(images, options.device)), _SIGHTED)
        tallies = {at: _tally(cases, detections, at) for at in _THRESHOLDS}
        most = max(tally.f1 for tally in tallies.values())
        best = max(at for at, tally in tallies.items() if tally.f1 >= most - _AS_GOOD)
        thresholds.append(best)
        tally = tallies[best]
        facts = {"f1": tally.f1, "recall": tally.recall, "precision": tally.precision, "colours": tally.colours}
        score = tally.f1 * tally.colours
        return Evaluation(score=score, loss=1.0 - score, facts={**facts, "threshold": best})

    return evaluate


def _tally(
    cases: list[tuple[Pixels, list[Placed]]], detections: list[list[DetectedObject]], at: float
) -> DetectionTally:
    tally = DetectionTally()
    for (_, placed), detected in zip(cases, detections, strict=True):
        tally.add(placed, [_seen(detection) for detection in detected if detection.score >= at])
    return tally


def _seen(detection: DetectedObject) -> SeenEntity:
    left, top, right, bottom = (edge / SIDE for edge in detection.box)
    colour = (COLOURS[detection.colour],)
    return SeenEntity(
        name=CLASSES[detection.label], box=(left, top, right, bottom), score=detection.score, attributes=colour
    )
