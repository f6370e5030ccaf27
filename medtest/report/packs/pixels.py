"""Pixels of seeds as plain PNG files without metadata, in the layout that a seed source reads."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from medtest.core.cases import Seed, SeedRef
from medtest.core.errors import typed_error
from medtest.core.files.by_content import Kind, encode
from medtest.core.files.zips import clashing, name_refused
from medtest.report.packs.lists import SeedPlace


class PixelWriter:
    """Writes seeds one by one.

    Args:
        folder: Target folder.

    Attributes:
        count: Number of written images.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: set[str] = set()
        self.count = 0

    def add(self, place: SeedPlace, seed: Seed) -> None:
        """Write a seed's image, and its mask if it has one.

        Raises:
            UserMistakes: It is not a picture.
            OSError: It cannot be written.
        """
        if not seed.ref.locator or seed.prompt is not None:
            return  # generated rather than read
        image, mask = _names_of(place.ref)
        if {image, mask} & self._names or clashing([*self._names, image, mask]):
            image, mask = (
                f"{place.ref.dataset}/images/{place.number}.png",
                f"{place.ref.dataset}/masks/{place.number}.png",
            )
        self._write(image, "images", seed)
        if seed.expected is not None:
            self._write(mask, "masks", seed)
        self.count += 1

    def _write(self, name: str, kind: Kind, seed: Seed) -> None:
        try:
            content = encode(kind, seed.image if kind == "images" or seed.expected is None else seed.expected)
        except ValueError as error:
            raise typed_error(
                "images",
                f"seeds that are not pictures: {error}",
                "images=true for seeds of 8-bit pictures",
                "remove images=; the pack then holds their SHA-256",
            ) from error
        self._names.add(name)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _names_of(ref: SeedRef) -> tuple[str, str]:
    """Return the target names of a seed's image and mask: those of its files, if these are plain pictures."""
    own = (f"{ref.dataset}/images/{ref.seed_id}.png", f"{ref.dataset}/masks/{ref.seed_id}.png")
    image, mask = _files_of(ref.locator)
    if not image:
        return own
    names = [str(PurePosixPath(name).with_suffix(".png")) for name in (image, mask or f"masks/{image}")]
    return own if any(name_refused(name) for name in names) else (names[0], names[1])


def _files_of(locator: str) -> tuple[str, str]:
    """Return the image and mask files named by a seed's locator; "" for slices and arrays."""
    try:
        content = json.loads(locator)
    except ValueError:
        return "", ""
    if isinstance(content, dict):  # labels, where an index means that a file holds several images
        sliced = bool(content.get("part")) or content.get("index", -1) >= 0
        image, mask = (None, None) if sliced else (content.get("image"), content.get("mask"))
    elif isinstance(content, list) and 2 <= len(content) <= 3:  # images with masks; a slice adds its position
        image, mask = content[:2]
    else:
        image, mask = None, None
    return image if isinstance(image, str) else "", mask if isinstance(mask, str) else ""
