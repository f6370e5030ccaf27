"""Object libraries from the user's images and masks: ``medtest objects build``.

Each connected part of a mask becomes a cut-out: the image's pixels with a feathered alpha, and its original position in
the field. The layouts of public data sets are in :mod:`medtest.relations.objects.layouts`; none of their content is in
this package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from medtest.core.cases import Image, Mask
from medtest.core.errors import Mistake, OutputProblem, UserMistakes
from medtest.core.files.images import BadFileError
from medtest.preparation.frame import fit_field
from medtest.relations.objects.layouts import ObjectImage, find_objects
from medtest.relations.objects.library import SOLID, ObjectLibrary
from medtest.relations.objects.matter.estimate import estimate_swatch
from medtest.relations.objects.placing import FieldLook, measure_field

RIM = 3
"""Distance in pixels from the field's border within which an outline counts as cut by it."""
CORNER_SHARE = 0.35
"""Share of an outline on the border above which the object is only partially visible."""
CUT_POINTS = 7
POURED = ("feces", "blood")
"""Kinds whose levels pour matter, for which a swatch is estimated."""
Progress = Callable[[int, int], None]
CutObject = tuple[dict[str, NDArray[np.uint8]], dict[str, Any]]
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Options for cutting out objects.

    Attributes:
        kind: instrument, feces or blood; None takes the layout's kind (``masks`` has none).
        source: Source of the images, for the record; the layout's name if empty.
        licence: Their licence, for the record.
        smallest: Least area of a part, as fraction of the field.
        largest: Largest area, as fraction of the field.
        longest: Longest side of a cut-out in pixels; larger ones are shrunk.
        feather: Standard deviation in pixels of the alpha's soft edge.
    """

    kind: str | None = None
    source: str = ""
    licence: str
    smallest: float = 0.002
    largest: float = 0.5
    longest: int = 640
    feather: float = 1.2


@dataclass(kw_only=True)
class BuildReport:
    """Summary of the files processed.

    Attributes:
        written: Number of cut-outs by kind.
        partial: Number of partial views, which are left out by default.
        skipped: (file relative to the root, reason).
    """

    written: dict[str, int] = field(default_factory=dict)
    partial: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


def build_library(
    layout: str, root: Path, out: Path, options: BuildOptions, progress: Progress | None = None
) -> BuildReport:
    """Cut every object out of the images under ``root`` into a library at ``out``.

    Args:
        layout: ``kvasir-instrument``, ``ead2020`` or ``masks``.
        root: The user's folder.
        out: The library; created if missing. Folders of other kinds in it stay.
        options: Options for cutting.
        progress: Called with (images done, images).

    Raises:
        UserMistakes: The folder has another layout, nothing could be cut, or ``out`` holds this kind already.
        OutputProblem: ``out`` cannot be written.
    """
    report = BuildReport()
    items = find_objects(layout, root, options.kind, report.skipped)
    _check_out(out, sorted({item.kind for item in items}))
    used: set[tuple[str, str]] = set()
    for index, item in enumerate(items):
        try:
            for files, facts in cut_objects(item, options, layout):
                _write(out, files, facts | {"name": _free_name(item.kind, item.stem, used)})
                report.written[item.kind] = report.written.get(item.kind, 0) + 1
                report.partial += int(facts["partial"])
        except (BadFileError, ValueError) as error:
            report.skipped.append((item.name, str(error)))
        if progress is not None:
            progress(index + 1, len(items))
    if not report.written:
        reasons = "; ".join(f"{name}: {why}" for name, why in report.skipped[:5])
        raise Mistake(
            where=root.name, found=f"no object to cut ({reasons or 'no masks'})", allowed="masks with objects"
        ).as_error()
    ObjectLibrary(out.resolve(), out.name)  # reads the result back under the rules for untrusted libraries
    return report


def cut_objects(item: ObjectImage, options: BuildOptions, layout: str) -> list[CutObject]:
    """Return every object of one image: its pictures, and the facts of the library's JSON without the name.

    The pictures, by the end of their files' names, are the cut-out (RGBA, uint8 h×w×4, cropped and shrunk), and of
    stool and blood ``.albedo`` and ``.surface`` (:mod:`medtest.relations.objects.matter.swatches`).

    Raises:
        ValueError: The image or the mask is unusable; the message gives the reason.
    """
    image, mask = item.load()
    if image.shape[:2] != mask.shape:
        raise ValueError(f"mask is {mask.shape[1]}×{mask.shape[0]}, image {image.shape[1]}×{image.shape[0]}")
    inside = np.logical_not(fit_field(image).frame(*image.shape[:2]))
    pixels = int(np.count_nonzero(inside))
    if pixels < 1000:
        raise ValueError("no field of view")
    count, labels, stats, _ = cv2.connectedComponentsWithStats((mask & inside).astype(np.uint8), connectivity=8)
    objects = []
    for label in range(1, count):
        area = int(stats[label, cv2.CC_STAT_AREA])
        if options.smallest * pixels <= area <= options.largest * pixels:
            objects.append(_cut(image, labels == label, inside, mask, item.kind, options, layout))
    if not objects:
        raise ValueError(
            f"no part between {100 * options.smallest:g} and {100 * options.largest:g} % of the field"
            if mask.any()
            else "empty mask"
        )
    return objects


def _cut(
    image: Image, part: Mask, inside: Mask, every: Mask, kind: str, options: BuildOptions, layout: str
) -> CutObject:
    box = cv2.boundingRect(part.view(np.uint8))
    pad = int(np.ceil(3 * options.feather))
    x0, y0 = max(box[0] - pad, 0), max(box[1] - pad, 0)
    x1, y1 = min(box[0] + box[2] + pad, image.shape[1]), min(box[1] + box[3] + pad, image.shape[0])
    window = (slice(y0, y1), slice(x0, x1))
    picture = _rgba(image[window], part[window], options.feather)
    picture = _shrunk(picture, options.longest)
    tissue = inside & ~every
    look = measure_field(image, tissue if np.count_nonzero(tissue) > 0.2 * np.count_nonzero(inside) else inside)
    columns, rows = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    field_box = (int(columns[0]), int(rows[0]), int(columns[-1] + 1 - columns[0]), int(rows[-1] + 1 - rows[0]))
    facts = _measurements(picture, look) | {
        "format": 1,
        "kind": kind,
        "centre": [
            _rounded(((x0 + x1) / 2 - field_box[0]) / field_box[2]),
            _rounded(((y0 + y1) / 2 - field_box[1]) / field_box[3]),
        ],
        "size": [_rounded((x1 - x0) / field_box[2]), _rounded((y1 - y0) / field_box[3])],
        "area": _rounded(float(np.count_nonzero(part)) / float(np.count_nonzero(inside)), 6),
        "source": options.source or layout,
        "licence": options.licence,
    }
    swatch = (estimate_swatch(image, part, tissue) if kind in POURED else None) or ()
    files = {"": picture} | dict(zip((".albedo", ".surface"), swatch, strict=False))
    return files, facts | _orientation(part, inside, field_box, (x0, y0, x1, y1))


def _rgba(image: Image, part: Mask, feather: float) -> NDArray[np.uint8]:
    """Return the cut-out; its soft edge is inside the mask, so that it carries no old background."""
    solid = np.asarray(part.astype(np.uint8) * np.uint8(255), np.uint8)
    if np.count_nonzero(part) > 400:
        solid = np.asarray(cv2.erode(solid, np.ones((3, 3), np.uint8), borderValue=255), np.uint8)
    # Replicated borders keep edges sharp if the image's border cuts the object.
    alpha = cv2.GaussianBlur(solid, (0, 0), feather, borderType=cv2.BORDER_REPLICATE)
    picture = np.ascontiguousarray(np.dstack([image, alpha]), np.uint8)
    picture[np.asarray(alpha) == 0] = 0
    return picture


def _shrunk(picture: NDArray[np.uint8], longest: int) -> NDArray[np.uint8]:
    height, width = picture.shape[:2]
    factor = longest / max(height, width)
    if factor >= 1:
        return picture
    # Premultiplied alpha keeps transparent surroundings from darkening the edge.
    alpha = picture[..., 3:].astype(np.float32) / 255
    work = np.dstack([picture[..., :3] * alpha, picture[..., 3]]).astype(np.float32)
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    small = np.asarray(cv2.resize(work, size, interpolation=cv2.INTER_AREA), np.float32)
    small[..., :3] /= np.maximum(small[..., 3:] / 255, 1 / 255)
    return np.clip(np.round(small), 0, 255).astype(np.uint8)


def _measurements(picture: NDArray[np.uint8], look: FieldLook) -> dict[str, Any]:
    solid = picture[..., 3] >= SOLID
    colours = picture[..., :3][solid].astype(np.float64)
    luma = (colours * _LUMA).sum(axis=1) / 255
    return {
        "pixels": int(solid.sum()),
        "mean_brightness": _rounded(float(luma.mean())),
        "contrast": _rounded(float(luma.std())),
        "mean_colour": [_rounded(float(value), 1) for value in colours.mean(axis=0)],
        "field_brightness": max(_rounded(look.brightness), 0.001),
        "field_contrast": _rounded(look.contrast),
        "field_colour": [_rounded(value) for value in look.colour],
    }


def _orientation(
    part: Mask, inside: Mask, field_box: tuple[int, int, int, int], box: tuple[int, int, int, int]
) -> dict[str, Any]:
    """Return the object's cut by the field's border, its tip, its angle, and whether the view is partial."""
    open_part = cv2.erode(inside.astype(np.uint8), np.ones((2 * RIM + 1, 2 * RIM + 1), np.uint8), borderValue=0)
    contours, _ = cv2.findContours(part.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outline = np.concatenate([contour.reshape(-1, 2) for contour in contours])
    on_border = outline[open_part[outline[:, 1], outline[:, 0]] == 0]
    corner, size = np.array(box[:2]), np.array([box[2] - box[0], box[3] - box[1]])

    def within(points: NDArray[Any]) -> list[list[float]]:
        return [[_rounded(float(v)) for v in point] for point in (points - corner) / size]

    ys, xs = np.nonzero(part)
    points = np.stack([xs, ys], axis=1).astype(np.float64)
    if len(on_border) < 3:
        axis = np.linalg.eigh(np.cov(points.T))[1][:, 1] if len(points) > 2 else np.array([0.0, 1.0])
        angle = float(np.rad2deg(np.arctan2(axis[1], axis[0])))
        return {"cut": [], "tip": within(points.mean(axis=0)[None])[0], "angle": _rounded(angle, 1), "partial": False}
    middle = on_border.mean(axis=0)
    tip = points[np.argmax(np.square(points - middle).sum(axis=1))]
    along = on_border - middle
    main = np.linalg.eigh(along.T @ along)[1][:, 1]
    order = np.argsort((along * main).sum(axis=1), kind="stable")
    chosen = on_border[order[np.linspace(0, len(order) - 1, CUT_POINTS).round().astype(int)]]
    direction = middle - tip
    return {
        "cut": within(chosen + 0.5),
        "tip": within(tip[None] + 0.5)[0],
        "angle": _rounded(float(np.rad2deg(np.arctan2(direction[1], direction[0]))), 1),
        "partial": len(on_border) > CORNER_SHARE * len(outline) or _in_corner(part, field_box),
    }


def _in_corner(part: Mask, field_box: tuple[int, int, int, int]) -> bool:
    """Return True if the object reaches two neighbouring sides of the field's bounding box."""
    x, y, width, height = cv2.boundingRect(part.view(np.uint8))
    left, top = x <= field_box[0] + RIM, y <= field_box[1] + RIM
    right = x + width >= field_box[0] + field_box[2] - RIM
    bottom = y + height >= field_box[1] + field_box[3] - RIM
    return (left or right) and (top or bottom)


def _rounded(value: float, digits: int = 4) -> float:
    return round(float(value), digits)


def _free_name(kind: str, stem: str, used: set[tuple[str, str]]) -> str:
    """Return a valid library name that no other object of the kind uses."""
    clean = re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).strip("-_") or "object"
    for number in range(1, 100_000):
        name = f"{clean[:56]}-{number}"
        if (kind, name) not in used:
            used.add((kind, name))
            return name
    raise ValueError("too many objects of one name")


def _check_out(out: Path, kinds: list[str]) -> None:
    mistakes = [
        Mistake(
            where=out.name,
            key="--out",
            found=f"{kind}/ is there and not empty",
            allowed="a folder without objects of this kind",
            fix="name another folder, or move this one away",
        )
        for kind in kinds
        if (out / kind).exists() and any((out / kind).iterdir())
    ]
    if mistakes:
        raise UserMistakes(mistakes)


def _write(out: Path, files: dict[str, NDArray[np.uint8]], facts: dict[str, Any]) -> None:
    folder, name = out / facts["kind"], facts["name"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part, picture in files.items():
            order = cv2.COLOR_RGBA2BGRA if picture.shape[2] == 4 else cv2.COLOR_RGB2BGR
            done, data = cv2.imencode(".png", cv2.cvtColor(picture, order), [cv2.IMWRITE_PNG_COMPRESSION, 7])
            if not done:
                raise ValueError("cannot be encoded as PNG")
            (folder / f"{name}{part}.png").write_bytes(data.tobytes())
        (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputProblem(f"{out.name} cannot be written: {error.strerror}") from error
