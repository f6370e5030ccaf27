"""Layouts of public and private data sets with images and masks of objects.

    kvasir-instrument   images/NAME.jpg, masks/NAME.png                                    (Jha et al. 2021)
    ead2020             images and, beside them, masks of five pages in the order instrument, specularity, artefact,
                        bubbles, saturation (NAME.tif or NAME_mask.tif), masks of one class each
                        (NAME_blood.tif, NAME_blood_mask.tif), and boxes NAME.txt (class, centre x, centre y, width,
                        height as fractions) with class_list.txt                           (Ali et al. 2020, 2021)
    masks               images/ and masks/ joined by stem, one kind, or masks/<kind>/

EAD2020 marks blood only by boxes; within a box the object is segmented by GrabCut. Untrusted files are bounded before
decoding, and links out of the folder are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from medtest.core.cases import Image, Mask
from medtest.core.errors import Mistake, UserMistakes, typed_error
from medtest.core.files.images import BadFileError, opened_picture, read_bytes, read_rgb, upright
from medtest.core.files.paths import is_inside
from medtest.relations.objects.library import KINDS

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
EAD_PAGES = ("instrument", "specularity", "artefact", "bubbles", "saturation")
EAD_CLASSES = ("specularity", "saturation", "artifact", "blur", "contrast", "bubbles", "instrument", "blood")
IMAGE_FOLDERS = ("images", "originalImages", "image", "frames", "Original")
MASK_FOLDERS = ("masks", "semantic_masks", "mask", "labels", "Ground Truth", "Groundtruth")
BOX_FOLDERS = ("bbox", "bboxes", "bbox_labels", "boxes", "annotations")
MOST_PIXELS = 40_000_000
MOST_FILES = 100_000
MOST_BOX_BYTES = 2**20

Skipped = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class ObjectImage:
    """Image with the mask of its objects, loaded on demand.

    Attributes:
        kind: instrument, feces or blood.
        stem: The image's name without suffix.
        name: The image relative to the root, for messages.
        load: Returns image (uint8 H×W×3 RGB) and mask (bool H×W); raises BadFileError with the reason.
    """

    kind: str
    stem: str
    name: str
    load: Callable[[], tuple[Image, Mask]]


def find_objects(layout: str, root: Path, kind: str | None, skipped: Skipped) -> list[ObjectImage]:
    """Return the images and masks of a layout under ``root``; unpaired files are added to ``skipped``.

    Raises:
        UserMistakes: Missing folder, a folder of another layout, or a missing kind.
    """
    if not root.is_dir():
        raise _mistake(root, "no such folder", "a folder with images and masks")
    if layout == "ead2020":
        return _ead(root.resolve(), kind, skipped)
    images = _folder(root, IMAGE_FOLDERS, "images")
    masks = _folder(root, MASK_FOLDERS, "masks")
    if layout == "kvasir-instrument":
        return _pairs(root, images, masks, "instrument", skipped)
    by_kind = [(name, masks / name) for name in KINDS if (masks / name).is_dir()]
    if by_kind:
        selected = [(name, folder) for name, folder in by_kind if kind in (None, name)]
        return [item for name, folder in selected for item in _pairs(root, images, folder, name, skipped)]
    if kind is None:
        raise typed_error(
            "--kind", "nothing", ", ".join(KINDS), "say what the masks mark, or sort them into masks/<kind>/"
        )
    return _pairs(root, images, masks, kind, skipped)


def _mistake(root: Path, problem: str, allowed: str) -> UserMistakes:
    return Mistake(where=root.name or str(root), found=problem, allowed=allowed).as_error()


def _folder(root: Path, names: Iterable[str], content: str) -> Path:
    """Return the first folder with one of these names, in ``root`` or one level below it."""
    children = sorted(path for path in root.iterdir() if path.is_dir())
    for place in (root, *children):
        for name in names:
            if (place / name).is_dir() and is_inside(root, place / name):
                return place / name
    raise _mistake(root, f"no folder of {content}", ", ".join(names))


def _files(root: Path, folder: Path, suffixes: tuple[str, ...], skipped: Skipped) -> dict[str, Path]:
    """Return the folder's files by stem; links out of the root and duplicate stems are skipped."""
    files: dict[str, Path] = {}
    for number, path in enumerate(sorted(folder.iterdir())):
        if number >= MOST_FILES:
            raise _mistake(root, f"more than {MOST_FILES} files in {folder.name}", f"at most {MOST_FILES}")
        if path.suffix.lower() not in suffixes or path.name.startswith("."):
            continue
        if not is_inside(root, path) or not path.is_file():
            skipped.append((_relative(root, path), "a link that leads out of the folder, or no file"))
        elif path.stem in files:
            skipped.append((_relative(root, path), f"a second file called {path.stem}"))
        else:
            files[path.stem] = path
    return files


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _pairs(root: Path, images: Path, masks: Path, kind: str, skipped: Skipped) -> list[ObjectImage]:
    pictures = _files(root, images, SUFFIXES, skipped)
    marks = _files(root, masks, SUFFIXES, skipped)
    marks |= {stem.removesuffix("_mask"): path for stem, path in marks.items() if stem.endswith("_mask")}
    items = []
    for stem, path in pictures.items():
        if stem in marks:
            load = _reader(path, marks[stem])
            items.append(ObjectImage(kind=kind, stem=stem, name=_relative(root, path), load=load))
        else:
            skipped.append((_relative(root, path), "no mask"))
    return items


def _reader(image: Path, mask: Path, page: int = 0) -> Callable[[], tuple[Image, Mask]]:
    return lambda: (read_rgb(image, max_pixels=MOST_PIXELS), read_mask(mask, page))


def _ead(root: Path, kind: str | None, skipped: Skipped) -> list[ObjectImage]:
    images = _folder(root, IMAGE_FOLDERS, "images")
    pictures = _files(root, images, SUFFIXES, skipped)
    masks, boxes = _optional(root, MASK_FOLDERS), _optional(root, BOX_FOLDERS)
    marks = _files(root, masks, SUFFIXES, skipped) if masks is not None else {}
    texts = _files(root, boxes, (".txt",), skipped) if boxes is not None else {}
    if not marks and not texts:
        raise _mistake(root, "neither masks nor boxes", f"{', '.join(MASK_FOLDERS)}; {', '.join(BOX_FOLDERS)}")
    classes = _class_list(root)
    items: list[ObjectImage] = []
    for stem, path in pictures.items():
        before = len(items)
        for marked in ("instrument", "blood"):
            if kind in (None, marked):
                load = _ead_reader(path, stem, marked, marks, texts, classes)
                if load is not None:
                    items.append(ObjectImage(kind=marked, stem=stem, name=_relative(root, path), load=load))
        if len(items) == before:
            skipped.append((_relative(root, path), f"no {kind or 'instrument or blood'} marked"))
    return items


def _ead_reader(
    image: Path, stem: str, marked: str, marks: dict[str, Path], texts: dict[str, Path], classes: tuple[str, ...]
) -> Callable[[], tuple[Image, Mask]] | None:
    """Return a reader of an object's mask from its own file, a page of the common one, or boxes; None without any."""
    for name in (f"{stem}_{marked}", f"{stem}_{marked}_mask", f"{stem}_{marked.capitalize()}"):
        if name in marks:
            return _reader(image, marks[name])
    if marked in EAD_PAGES:
        for name in (stem, f"{stem}_mask"):
            if name in marks and _has_page(marks[name], EAD_PAGES.index(marked)):
                return _reader(image, marks[name], EAD_PAGES.index(marked))
    if stem in texts and marked in classes:
        boxes = _read_boxes(texts[stem], classes.index(marked))
        if boxes:
            return lambda: _from_boxes(read_rgb(image, max_pixels=MOST_PIXELS), boxes)
    return None


def _optional(root: Path, names: tuple[str, ...]) -> Path | None:
    try:
        return _folder(root, names, "")
    except UserMistakes:
        return None


def _has_page(path: Path, page: int) -> bool:
    """Return True if the mask file has a non-empty page of this number; unreadable files are reported on reading."""
    try:
        return bool(read_mask(path, page).any())
    except BadFileError as error:
        return "pages" not in str(error)


def _class_list(root: Path) -> tuple[str, ...]:
    for path in (root / "class_list.txt", *sorted(root.glob("*/class_list.txt"))):
        if path.is_file() and is_inside(root, path) and path.stat().st_size < MOST_BOX_BYTES:
            names = re.findall(r"[A-Za-z_]+", path.read_text(encoding="utf-8", errors="replace"))
            return tuple(name.lower() for name in names)
    return EAD_CLASSES


def _read_boxes(path: Path, class_index: int) -> list[tuple[float, float, float, float]]:
    if path.stat().st_size > MOST_BOX_BYTES:
        return []
    boxes = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        numbers = line.split()
        try:
            values = [float(value) for value in numbers]
        except ValueError:
            continue
        if len(values) == 5 and values[0] == class_index and all(0 <= value <= 1 for value in values[1:]):
            boxes.append((values[1], values[2], values[3], values[4]))
    return boxes[:32]


def _from_boxes(image: Image, boxes: list[tuple[float, float, float, float]]) -> tuple[Image, Mask]:
    """Return the image and GrabCut's segmentation of the object within each box."""
    height, width = image.shape[:2]
    scale = min(1.0, 400 / max(height, width))
    small = cv2.resize(image, (max(int(width * scale), 8), max(int(height * scale), 8)), interpolation=cv2.INTER_AREA)
    rows, columns = small.shape[:2]
    segmented = np.zeros((rows, columns), np.uint8)
    for x, y, w, h in boxes:
        left, top = max(int((x - w / 2) * columns), 1), max(int((y - h / 2) * rows), 1)
        right, bottom = min(int((x + w / 2) * columns), columns - 1), min(int((y + h / 2) * rows), rows - 1)
        if right - left < 6 or bottom - top < 6:
            continue
        labels = np.zeros((rows, columns), np.uint8)
        cv2.setRNGSeed(0)
        models = np.zeros((1, 65)), np.zeros((1, 65))
        rectangle = (left, top, right - left, bottom - top)
        cv2.grabCut(np.ascontiguousarray(small[..., ::-1]), labels, rectangle, *models, 4, cv2.GC_INIT_WITH_RECT)
        segmented |= ((labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)).astype(np.uint8)
    segmented = cv2.morphologyEx(segmented, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return image, cv2.resize(segmented, (width, height), interpolation=cv2.INTER_NEAREST_EXACT).astype(np.bool_)


def read_mask(path: Path, page: int = 0) -> Mask:
    """Return a mask as bool H×W, True above half of its largest possible value (JPEG masks are noisy).

    Args:
        path: The file.
        page: Page of a TIFF, from 0.

    Raises:
        BadFileError: The file is no picture, too large, has too few pages, or cannot be decoded.
    """
    with opened_picture(read_bytes(path, max_pixels=MOST_PIXELS), MOST_PIXELS, page=page) as opened:
        picture = upright(opened)
        grey = picture.mode == "L" or picture.mode.startswith(("I", "F"))
        values = np.array(picture if grey else picture.convert("L"), np.float32)
    top = float(values.max(initial=0.0))
    # Masks may hold 0 and 1, 0 and 255, or 0 and 65535.
    limit = 0.5 if top <= 1 else 127.5 if top <= 255 else 32767.5
    return np.asarray(values > limit, np.bool_)
