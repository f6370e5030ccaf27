"""Clean images as seeds of a series: the user's folder, or pictures shipped with scikit-image."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Image, ImageSpec, Seed, SeedRef
from medtest.core.errors import MedtestError, Mistake, UserMistakes, nearest_name, typed_error
from medtest.core.files import json_sha256
from medtest.core.files.images import MOST_PIXELS, BadFileError, decode_size, read_bytes
from medtest.core.files.walk import DEEPEST, walk
from medtest.core.plugins import PartSettings
from medtest.seeds.base import SeedFaults, SeedProblem, SeedSource
from medtest.seeds.folders.formats import PICTURES, is_ignored
from medtest.seeds.volumes.scikit_images import NAMES, central_crop, load_image

SMALLEST = 16
"""Least side in pixels; SSIM's window alone takes 11."""
MOST_FILES = 100_000


class SeriesImagesSettings(PartSettings):
    """Settings of :class:`SeriesImages`.

    Attributes:
        names: Pictures of scikit-image to take without ``data=``; all if empty.
        colour: ``grey`` (ITU-R BT.601 luma), ``rgb`` (grey pictures get three equal colours) or ``own``.
        dtype: ``float32`` keeps noise outside the value range; ``own`` keeps 8 or 16 bit, which cannot.
        max_side: Larger pictures are cropped to their centre; 0 keeps them whole.
        on_bad_seed: ``stop`` (one report lists every bad file) or ``skip``.
        max_pixels: Larger pictures are refused before they are decoded.
    """

    names: list[str] = Field(default=[])
    colour: Literal["grey", "rgb", "own"] = "grey"
    dtype: Literal["float32", "own"] = "float32"
    max_side: Annotated[int, Field(ge=0, le=65_536)] = 0
    on_bad_seed: Literal["stop", "skip"] = "stop"
    max_pixels: int = Field(default=64_000_000, ge=1, le=MOST_PIXELS)


class SeriesImages(SeedSource):
    """Clean images, each its own ground truth.

    With ``data=PATH`` every picture below the folder (8 and 16 bit, grey and RGB) is a seed named by its path without
    suffix; otherwise scikit-image's pictures are used, which need no download.
    """

    Settings: ClassVar[type[PartSettings]] = SeriesImagesSettings
    task: ClassVar[str] = "image"
    revision: ClassVar[int] = 1
    takes_root: ClassVar[bool] = True

    settings: SeriesImagesSettings

    def places(self) -> Sequence[SeedRef]:
        """Return every picture in its place, including unusable ones.

        Raises:
            UserMistakes: A name is unknown, or the folder holds no picture.
        """
        return tuple(ref for ref, _ in self._listed[0])

    def faults(self) -> SeedFaults:
        """Return the unusable files that were not left out."""
        if self.settings.on_bad_seed == "skip":
            return SeedFaults()
        refs, problems = self._listed
        wrong = {problem.file: problem for problem in problems}
        of_seeds = {(ref.dataset, ref.seed_id): (wrong[ref.locator],) for ref, _ in refs if ref.locator in wrong}
        return SeedFaults(of_seeds=of_seeds)

    def refusal(self, problems: Sequence[SeedProblem]) -> UserMistakes:
        """Return a single error report on all unusable files."""
        fix = "correct or remove it, or set on_bad_seed: skip"
        return UserMistakes([Mistake(where=problem.file, found=problem.reason, fix=fix) for problem in problems[:50]])

    def problems(self) -> Sequence[SeedProblem]:
        """Return the files left out under ``on_bad_seed: skip``."""
        return self._listed[1] if self.settings.on_bad_seed == "skip" else ()

    def digest(self) -> str:
        """Return a SHA-256 over ids and contents, in order, and over the settings that change pixels."""
        content: dict[str, Any] = {
            "source": "series_images",
            "revision": self.revision,
            "settings": self.settings.model_dump(mode="json", include={"colour", "dtype", "max_side"}),
            "dataset": self.dataset,
            "seeds": [[ref.seed_id, digest] for ref, digest in self._listed[0]],
        }
        return json_sha256(content)

    def load(self, ref: SeedRef) -> Seed:
        """Read one picture.

        Raises:
            UserMistakes: A file has changed since it was checked and cannot be read any more.
        """
        side = self.settings.max_side
        if self.root is None:
            pixels: Image = load_image(ref.seed_id)
        else:
            try:
                content = read_bytes(self.root / ref.locator, max_pixels=self.settings.max_pixels)
                pixels = _decoded(content)
            except BadFileError as error:
                raise Mistake(where=ref.locator, found=str(error)).as_error() from error
        image = _coloured(central_crop(pixels, side) if side else pixels, self.settings.colour)
        high = float(np.iinfo(image.dtype).max)
        if self.settings.dtype == "float32":
            image = image.astype(np.float32)
        axes = "yxc" if image.ndim == 3 else "yx"
        return Seed(
            ref=ref,
            image=np.ascontiguousarray(image),
            kind="image",
            spec=ImageSpec(dtype=str(image.dtype), low=0.0, high=high, axes=axes),
        )

    @cached_property
    def _listed(self) -> tuple[list[tuple[SeedRef, str]], tuple[SeedProblem, ...]]:
        """Return references with the SHA-256 of their contents, and the problems."""
        return (self._bundled(), ()) if self.root is None else self._folder(self.root)

    def _bundled(self) -> list[tuple[SeedRef, str]]:
        unknown = [name for name in self.settings.names if name not in NAMES]
        if unknown:
            where, key = "suite", f"seeds.{self.dataset}.names"
            nearest = nearest_name(unknown[0], NAMES)
            raise Mistake(where=where, key=key, found=unknown[0], allowed=", ".join(NAMES), nearest=nearest).as_error()
        entries = []
        for name in self.settings.names or NAMES:
            try:
                pixels = load_image(name)
            except MedtestError as error:
                raise Mistake(where="scikit-image", found=str(error), fix="add data=PATH").as_error() from error
            ref = SeedRef(dataset=self.dataset, seed_id=name, locator=name)
            entries.append((ref, hashlib.sha256(pixels.tobytes()).hexdigest()))
        return entries

    def _folder(self, root: Path) -> tuple[list[tuple[SeedRef, str]], tuple[SeedProblem, ...]]:
        if not root.is_dir():
            raise _data_mistake(f"{root.name}, which is not a folder")
        below = walk(root, deepest=DEEPEST, ignored=is_ignored)
        names_below = (root / folder.path / name for folder in below for name in folder.files)
        files = sorted(path for path in names_below if path.suffix.lower() in PICTURES)
        entries: list[tuple[SeedRef, str]] = []
        problems: list[SeedProblem] = []
        names: dict[str, str] = {}
        for path in files[:MOST_FILES]:
            name = path.relative_to(root).as_posix()
            seed_id = name[: -len(path.suffix)]
            try:
                if seed_id in names:
                    raise BadFileError(f"has the same name as {names[seed_id]}")
                digest = self._checked(path)
            except BadFileError as error:
                problems.append(SeedProblem(file=name, reason=str(error)))
                if self.settings.on_bad_seed == "skip":
                    continue
                seed_id, digest = (name if seed_id in names else seed_id), ""
            names[seed_id] = name
            entries.append((SeedRef(dataset=self.dataset, seed_id=seed_id, locator=name), digest))
        if not entries:
            raise _data_mistake(f"{root.name}, which holds no usable picture")
        return entries, tuple(problems)

    def _checked(self, path: Path) -> str:
        content = read_bytes(path, max_pixels=self.settings.max_pixels)
        height, width = decode_size(content, max_pixels=self.settings.max_pixels)
        if min(height, width) < SMALLEST:
            raise BadFileError(f"is {width} by {height} pixels; {SMALLEST} by {SMALLEST} are needed")
        _decoded(content)
        return hashlib.sha256(content).hexdigest()


def _data_mistake(problem: str) -> UserMistakes:
    allowed = "a folder of pictures (PNG, JPEG, TIFF, BMP, WebP)"
    return typed_error("data", problem, allowed)


def _decoded(content: bytes) -> NDArray[Any]:
    """Return a picture of bounded size as uint8 or uint16, H×W or H×W×3 RGB.

    Raises:
        BadFileError: The picture is damaged or not of 8 or 16 bits.
    """
    try:
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR)
    except cv2.error as error:
        raise BadFileError("is damaged") from error
    if image is None:
        raise BadFileError("is damaged, or not a readable picture")
    if image.dtype not in (np.uint8, np.uint16):
        raise BadFileError(f"holds {image.dtype}; 8 or 16 bits are read")
    return np.ascontiguousarray(image[..., ::-1]) if image.ndim == 3 else np.asarray(image)


def _coloured(image: Image, colour: str) -> Image:
    image = np.ascontiguousarray(image)
    if colour == "grey" and image.ndim == 3:
        return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    if colour == "rgb" and image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=2)
    return image
