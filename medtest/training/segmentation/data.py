"""Training pairs in memory: real ones from folders, phantoms from the generator, and batches of both.

Batches depend only on the seed and the number of the step, so that a resumed training sees the same batches as an
uninterrupted one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.errors import MedtestError
from medtest.core.plugins import part
from medtest.phantoms.colon import REVISION, colon_rng, make_colon
from medtest.seeds.base import SeedSource
from medtest.seeds.needed import first_places
from medtest.systems.checkpoints.inputs import IMAGENET, InputKind
from medtest.training.engine.order import case_at
from medtest.training.segmentation.augment import Augmentation, augment
from medtest.training.segmentation.colour import Colours, colours_of, exchange_colours
from medtest.training.segmentation.losses import border_weights

Floats = NDArray[np.float32]
PHANTOMS = "training"
"""Data set name of training phantoms; suites use other names, so that their phantoms differ."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Images and masks of one size.

    Attributes:
        images: uint8 N×S×S×3 RGB.
        masks: uint8 N×S×S, 0 or 255.
        names: One name per pair.
    """

    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> Pairs:
        """Return the chosen pairs, in this order."""
        chosen = np.asarray(indices, np.int64)
        return Pairs(
            images=self.images[chosen], masks=self.masks[chosen], names=tuple(self.names[int(i)] for i in chosen)
        )

    @staticmethod
    def join(parts: Sequence[Pairs]) -> Pairs:
        """Return several sets of one size as one."""
        return Pairs(
            images=np.concatenate([part.images for part in parts]),
            masks=np.concatenate([part.masks for part in parts]),
            names=tuple(name for part in parts for name in part.names),
        )

    def digest(self) -> str:
        """Return a SHA-256 over every pixel and name."""
        digest = hashlib.sha256("\n".join(self.names).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        digest.update(np.ascontiguousarray(self.masks).data)
        return digest.hexdigest()


def shrink(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Resize an image to size×size, averaging areas when shrinking."""
    smaller = image.shape[0] >= size and image.shape[1] >= size
    interpolation = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, (size, size), interpolation=interpolation), np.uint8)


def shrink_mask(mask: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Resize a mask of 0 and 255 to size×size, 0 or 255 by the majority of each pixel's area."""
    return np.where(shrink(mask, size) > 127, 255, 0).astype(np.uint8)


def shrink_pairs(pairs: Pairs, size: int) -> Pairs:
    """Return the pairs at another size."""
    return Pairs(
        images=np.stack([shrink(image, size) for image in pairs.images]),
        masks=np.stack([shrink_mask(mask, size) for mask in pairs.masks]),
        names=pairs.names,
    )


def _stack(pairs: Sequence[tuple[str, NDArray[np.uint8], NDArray[np.uint8]]], source: str) -> Pairs:
    if not pairs:
        raise MedtestError(f"{source}: no image with a mask was found to train on")
    return Pairs(
        images=np.stack([image for _, image, _ in pairs]),
        masks=np.stack([mask for _, _, mask in pairs]),
        names=tuple(name for name, _, _ in pairs),
    )


def pairs_from_source(source: SeedSource, *, size: int) -> Pairs:
    """Load every labelled seed of a source at one size.

    Args:
        source: A folder of images and masks, or phantoms.
        size: Side to which the pairs are resized.

    Raises:
        UserMistakes: Files cannot be used.
        MedtestError: The source holds no labelled image.
    """
    loaded: list[tuple[str, NDArray[np.uint8], NDArray[np.uint8]]] = []
    for ref in first_places(source, None):
        seed = source.load(ref)
        if seed.expected is not None:
            mask = shrink_mask(seed.expected.astype(np.uint8) * 255, size)
            loaded.append((f"{ref.dataset}/{ref.seed_id}", shrink(seed.image, size), mask))
    return _stack(loaded, source.dataset)


def folder_source(root: Path) -> SeedSource:
    """Return a folder of images and masks, in any layout supported by medtest's own suites."""
    info = part("seeds", "image_mask_folders")
    kind = info.load()
    source: SeedSource = kind(
        dataset=root.name.lower(), settings=kind.Settings(**info.defaults), root=root, suite_seed=0
    )
    return source


def phantom_pairs(count: int, *, seed: int, size: int, cache: Path, negatives: float | None = None) -> Pairs:
    """Return phantoms with masks at one size, from the cache if present.

    Args:
        count: Number of phantoms.
        seed: Suite seed of the phantoms.
        size: Side in pixels.
        cache: Folder of the cache; created if missing.
        negatives: Probability of a phantom without a polyp; None for the phantoms' own.
    """
    share = "" if negatives is None else f"_neg{negatives:g}"
    file = cache / f"colon_r{REVISION}_s{seed}_n{count}{share}_{size}.npz"
    names = tuple(f"{PHANTOMS}/{index}" for index in range(count))
    if file.is_file():
        with np.load(file) as stored:
            return Pairs(images=stored["images"], masks=stored["masks"], names=names)
    images = np.empty((count, size, size, 3), np.uint8)
    masks = np.empty((count, size, size), np.uint8)
    for index in range(count):
        rng = colon_rng(seed, PHANTOMS, index)
        phantom = make_colon(rng) if negatives is None else make_colon(rng, negatives=negatives)
        images[index] = shrink(phantom.image, size)
        masks[index] = shrink_mask(phantom.mask.astype(np.uint8) * 255, size)
    cache.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    with partial.open("wb") as opened:
        np.savez(opened, images=images, masks=masks)
    partial.replace(file)
    return Pairs(images=images, masks=masks, names=names)


class PairBatches:
    """Draws batches from several sets of pairs in fixed shares.

    Args:
        sets: The sets and the number of pairs of each in a batch; each pass over a set is completed before it is
            reshuffled.
        sizes: Image sides, one of which is drawn for each step.
        seed: Determines a batch together with the step's number.
        changes: The random changes.
        kind: Input format of the network.
        exchange: Probability that an image takes the colours of another one from any of the sets, see
            :mod:`medtest.training.segmentation.colour`.
        wrap: Whether the exchange wraps values around, as in the published training.
    """

    def __init__(
        self,
        sets: Sequence[tuple[Pairs, int]],
        *,
        sizes: Sequence[int],
        seed: int,
        changes: Augmentation,
        kind: InputKind = IMAGENET,
        exchange: float = 0.0,
        wrap: bool = False,
    ) -> None:
        self._sets = [(pairs, count) for pairs, count in sets if count > 0]
        self._sizes = list(sizes)
        self._seed = seed
        self._changes = changes
        self._kind = kind
        self._exchange = exchange
        self._wrap = wrap
        self._colours: dict[tuple[int, int], Colours] = {}

    def batch(self, step: int) -> tuple[Floats, Floats, Floats]:
        """Return the batch of a step, from 0.

        Returns:
            Images, float32 B×3×S×S in the network's :class:`InputKind`; their truth, float32 B×1×S×S, 0 or 1; and
            :func:`medtest.training.segmentation.losses.border_weights`, of the same shape.
        """
        rng = np.random.Generator(np.random.PCG64([self._seed, 1, step]))
        size = int(rng.choice(self._sizes))
        images: list[NDArray[np.uint8]] = []
        masks: list[NDArray[np.uint8]] = []
        for number, (pairs, count) in enumerate(self._sets):
            for position in range(step * count, (step + 1) * count):
                index = case_at(position, len(pairs), seed=self._seed, group=number)
                source = self._recoloured(rng, pairs.images[index])
                image, mask = augment(rng, source, pairs.masks[index], size=size, changes=self._changes)
                images.append(image)
                masks.append(mask)
        stacked = np.stack(masks)
        weights = np.stack([border_weights(mask) for mask in masks])[:, None]
        return self._kind.tensor(np.stack(images)), (stacked[:, None] > 127).astype(np.float32), weights

    def _recoloured(self, rng: np.random.Generator, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Replace an image's colours by those of a random image from any set, with probability ``exchange``."""
        if self._exchange <= 0 or rng.random() >= self._exchange:
            return image
        number = int(rng.integers(len(self._sets)))
        donors = self._sets[number][0]
        index = int(rng.integers(len(donors)))
        donor = self._colours.get((number, index))
        if donor is None:
            donor = self._colours[number, index] = colours_of(donors.images[index])
        return exchange_colours(image, donor, wrap=self._wrap)
