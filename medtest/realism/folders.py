"""Folders of real artefacts: pictures, masks beside them, and which pictures come from one video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from medtest.core.cases import Image, Mask
from medtest.core.errors import Mistake, UserMistakes, nearest_name, typed_error, typed_mistake
from medtest.core.files.images import BadFileError, read_bytes, read_rgb
from medtest.core.files.masks import decode_mask
from medtest.core.files.walk import files_below
from medtest.preparation.frame import fit_field
from medtest.realism.options import REAL, RealPlaces
from medtest.realism.outlines import RULES
from medtest.seeds.folders.metadata import Metadata, read_metadata

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
MASK = "_mask"
"""End of the name of a mask, before its suffix."""
MOST_PICTURES = 5000


@dataclass(frozen=True, kw_only=True, eq=False)
class RealPicture:
    """A real picture, opened on demand.

    Attributes:
        name: Path below its folder.
        path: The file.
        mask_path: Its mask, or None.
        group: Its video or patient; its own name if unknown.
    """

    name: str
    path: Path
    mask_path: Path | None
    group: str

    def read(self, part: str) -> tuple[Image, Mask, Mask | None]:
        """Return the picture, its field of view and the artefact's mask (None without mask and rule).

        Args:
            part: Name of the relation's part, whose rule outlines the artefact if there is no mask.

        Raises:
            BadFileError: A file cannot be read, or the mask has another size.
        """
        image = read_rgb(self.path)
        view = np.logical_not(fit_field(image).frame(*image.shape[:2]))
        if self.mask_path is None:
            rule = RULES.get(part)
            return image, view, None if rule is None else rule(image, view)
        mask = decode_mask(read_bytes(self.mask_path)).mask
        if mask.shape != image.shape[:2]:
            raise BadFileError(
                f"its mask is {mask.shape[1]}×{mask.shape[0]}, the picture {image.shape[1]}×{image.shape[0]}"
            )
        return image, view, mask


@dataclass(frozen=True, kw_only=True)
class RealFolder:
    """Real pictures of one relation.

    Attributes:
        relation: Relation id in the suite.
        part: Name of the relation's part.
        pictures: The pictures, by name.
    """

    relation: str
    part: str
    pictures: tuple[RealPicture, ...]


def real_folders(places: RealPlaces, parts: Mapping[str, str]) -> tuple[list[RealFolder], list[str]]:
    """Return the folders of real pictures for the relations of a suite, and notices.

    Args:
        places: The typed folders.
        parts: Name of the part by relation id, without the floor relation.

    Raises:
        UserMistakes: A folder belongs to no relation, holds no pictures, or its metadata cannot be used.
    """
    allowed = dict.fromkeys([*parts, *parts.values()])
    mistakes = [
        typed_mistake(f"{REAL}.{name}", name, ", ".join(allowed), nearest=nearest_name(name, allowed))
        for name in places.folders
        if name not in allowed
    ]
    if mistakes:
        raise UserMistakes(mistakes)
    paths = dict(places.folders)
    unused: list[str] = []
    if places.root is not None:
        below = sorted(path for path in places.root.iterdir() if path.is_dir() and not path.name.startswith("."))
        unused = [path.name for path in below if path.name not in allowed]
        paths = {path.name: path for path in below if path.name in allowed} | paths
        if not paths:
            raise typed_error(
                REAL,
                f"{places.root.name} with {', '.join(unused[:8]) or 'no folders'}",
                f"folders named like relations of the suite: {', '.join(allowed)}",
                "rename them, or name each: real.feces=FOLDER",
            )
    folders = []
    for name, path in paths.items():
        relations = [name] if name in parts else [relation for relation, part in parts.items() if part == name]
        pictures = tuple(_pictures(path, places))
        folders += [RealFolder(relation=each, part=parts[each], pictures=pictures) for each in relations]
    order = list(parts)
    notices = [f"not compared, no relation of the suite has this name: {', '.join(unused)}"] if unused else []
    return sorted(folders, key=lambda folder: order.index(folder.relation)), notices


def without_names(folder: RealFolder) -> RealFolder:
    """Return a folder with numbers in place of the names of pictures, videos and patients."""
    groups = {group: str(number) for number, group in enumerate(dict.fromkeys(p.group for p in folder.pictures), 1)}
    pictures = tuple(
        replace(picture, name=str(number), group=groups[picture.group])
        for number, picture in enumerate(folder.pictures, 1)
    )
    return replace(folder, pictures=pictures)


def _pictures(folder: Path, places: RealPlaces) -> Iterable[RealPicture]:
    try:
        files = sorted(path for path in files_below(folder) if path.suffix.lower() in SUFFIXES)
    except BadFileError as error:
        raise Mistake(where=folder.name, found=str(error), allowed="a folder of pictures").as_error() from error
    masks = {path.with_name(path.stem.removesuffix(MASK)): path for path in files if path.stem.endswith(MASK)}
    images = [path for path in files if not path.stem.endswith(MASK)]
    if not images or len(images) > MOST_PICTURES:
        content = f"{len(images):,} pictures" if images else "no pictures"
        allowed = f"1 to {MOST_PICTURES:,} pictures NAME.png or NAME.jpg, with masks NAME{MASK}.png beside them"
        raise Mistake(where=folder.name, found=content, allowed=allowed).as_error()
    metadata = _metadata(folder, places)
    for path in images:
        name = path.relative_to(folder).as_posix()
        facts = None if metadata is None else metadata.of("", (name, path.name))
        if metadata is not None and (facts is None or facts.wrong):
            reason = facts.wrong if facts is not None else f"no row for {name}"
            fix = "add the row, or remove the file"
            raise Mistake(where=metadata.where, key=name, found=reason, allowed="one row a picture", fix=fix).as_error()
        group = facts.cluster if facts is not None and facts.cluster else name
        yield RealPicture(name=name, path=path, mask_path=masks.get(path.with_suffix("")), group=group)


def _metadata(folder: Path, places: RealPlaces) -> Metadata | None:
    """Return the metadata of a folder, from the folder or its root; None if there are none."""
    above = [places.root] if places.root is not None and places.root in folder.parents else []
    for place in (folder, *above):
        path = place / places.metadata
        if path.is_file():
            return read_metadata(path, f"{place.name}/{places.metadata}")
    if places.metadata_typed:
        shown = " or ".join(place.name for place in (folder, *above))
        raise typed_error("metadata", places.metadata, f"a CSV in {shown}")
    return None
