"""Evaluation of a system on unchanged images: Dice and IoU with intervals, for model cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Address, Image, Mask
from medtest.core.errors import MedtestError, UserMistakes
from medtest.core.plugins import part
from medtest.core.tasks.border import check_mask
from medtest.systems.base import Missing, System
from medtest.training.scores import Interval, bootstrap, dice_and_iou

SIZE = 512
"""Side at which images are shown to the system and masks compared, as in suites."""
PHANTOM_SEED = 99
"""Suite seed of the phantoms for evaluation, not used by any training."""
BATCH = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkScores:
    """Scores of one set of images.

    Attributes:
        name: Name of the set.
        dice: Mean Dice with its 95 % bootstrap interval over images.
        iou: Mean IoU with its 95 % bootstrap interval over images.
        scores: Dice per image, in order.
    """

    name: str
    dice: Interval
    iou: Interval
    scores: NDArray[np.float64]


Pair = tuple[str, Image, Mask]


def folder_images(root: Path) -> list[Pair]:
    """Return every labelled image of a folder at the prepared size, images averaged by area, masks nearest."""
    from medtest.training.segmentation.data import folder_source

    source = folder_source(root)
    pairs: list[Pair] = []
    for ref in source.refs():
        seed = source.load(ref)
        if seed.expected is not None:
            pairs.append((ref.seed_id, *_prepared(seed.image, seed.expected)))
    if not pairs:
        raise MedtestError(f"{root.name}: no image with a mask was found")
    return pairs


def phantom_images(count: int, *, seed: int = PHANTOM_SEED) -> list[Pair]:
    """Return phantoms that no training has seen, at the prepared size."""
    from medtest.phantoms.colon import colon_rng, make_colon

    pairs: list[Pair] = []
    for index in range(count):
        phantom = make_colon(colon_rng(seed, "evaluation", index))
        pairs.append((str(index), *_prepared(phantom.image, phantom.mask)))
    return pairs


def _prepared(image: Image, mask: Mask) -> tuple[Image, Mask]:
    from medtest.training.segmentation.data import shrink

    nearest = cv2.resize(mask.astype(np.uint8), (SIZE, SIZE), interpolation=cv2.INTER_NEAREST_EXACT)
    return shrink(image, SIZE), nearest > 0


def evaluate(
    system: System, pairs: Sequence[Pair], *, name: str, progress: Callable[[int, int], None] | None = None
) -> NetworkScores:
    """Run an opened system on every image and score its masks.

    Raises:
        MedtestError: The system has no answer for an image.
        BadOutput: It returned something that is not a mask.
    """
    dice: list[float] = []
    iou: list[float] = []
    for start in range(0, len(pairs), BATCH):
        group = pairs[start : start + BATCH]
        addresses = [Address(dataset="evaluation", seed_id=seed_id) for seed_id, _, _ in group]
        answers = system.predict([image for _, image, _ in group], addresses)
        for (seed_id, _, truth), answer in zip(group, answers, strict=True):
            if isinstance(answer, Missing):
                raise MedtestError(f"{system.record_name} has no answer for {seed_id}: {answer.reason}")
            pair_scores = dice_and_iou(check_mask(answer, (SIZE, SIZE)).mask, truth)
            dice.append(pair_scores[0])
            iou.append(pair_scores[1])
        if progress is not None:
            progress(min(start + BATCH, len(pairs)), len(pairs))
    scores = np.array(dice)
    return NetworkScores(name=name, dice=bootstrap(scores), iou=bootstrap(np.array(iou)), scores=scores)


def open_system(
    name: str,
    *,
    checkpoint: str | None = None,
    threads: int = 1,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> System:
    """Create and open a system by its name for ``model=``, with settings that override its defaults.

    Raises:
        UserMistakes: There is no such system, or its files are invalid.
    """
    info = part("systems", name, where="command line", key="model")
    kind = info.load()
    values = {**info.defaults, **(settings or {}), **({"checkpoint": checkpoint} if checkpoint else {})}
    system: System = kind(name, kind.Settings(**values))
    mistakes = system.check()
    if mistakes:
        raise UserMistakes(mistakes)
    system.open(device=device, threads=threads)
    return system
