"""Draw the bundled object library: ``python scripts/draw_objects.py [--out DIR] [--sheet FILE]``.

Writes ``<out>/<kind>/<name>.webp`` (lossless) and ``.json``; the same versions of NumPy and OpenCV give the same
pixels. The pictures are CC0: nothing in them is taken from a photograph.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

sys.path.insert(0, str(Path(__file__).resolve().parent))
from object_drawing.blood import BLOOD
from object_drawing.feces import FECES
from object_drawing.instruments import INSTRUMENTS, Instrument, Pose
from object_drawing.shading import Canvas
from object_drawing.swatches import SWATCHES, draw_swatch

ROOT = Path(__file__).resolve().parents[1]
LICENCE = "CC0-1.0"
SOURCE = "drawn by scripts/draw_objects.py of medtest"
FIELD = {"field_brightness": 0.46, "field_contrast": 0.175, "field_colour": [0.504, 0.287, 0.209]}
"""The field that the objects' light was chosen for: medians over real colonoscopy images (Kvasir-SEG)."""
SOLID = 77
"""Alpha from which a pixel counts as the object (medtest.relations.objects.library.SOLID)."""
CALLED = {
    "argon_probe": ["probe", "tube"],
    "biopsy_forceps_closed": ["biopsy_forceps"],
    "biopsy_forceps_open": ["biopsy_forceps"],
    "cap_edge": ["cap"],
    "clip_deployed": ["metal_clip"],
    "clip_on_catheter": ["metal_clip", "tube"],
    "coagulation_forceps": ["biopsy_forceps"],
    "cytology_brush": ["brush"],
    "dissection_knife": ["knife"],
    "drain_tube": ["tube"],
    "hook_knife": ["knife"],
    "injection_needle": ["injection_needle"],
    "retrieval_basket": ["basket"],
    "snare_closed": ["polyp_snare"],
    "snare_hexagonal": ["polyp_snare"],
    "snare_open": ["polyp_snare"],
    "spray_catheter": ["tube"],
}
"""What an instrument is rightly called, in the names that answers are typed with (answers)."""
FIELD_SIDE = 512.0
"""Side of that field in pixels; sizes in the metadata are fractions of it."""
Rgba = NDArray[np.uint8]


def crop(picture: Rgba, limit: int = 384) -> tuple[Rgba, tuple[int, int]]:
    """Cut away empty borders; return the picture and its corner's place, and shrink nothing.

    Raises:
        ValueError: The object is larger than ``limit``.
    """
    rows = np.flatnonzero(picture[..., 3].max(axis=1))
    columns = np.flatnonzero(picture[..., 3].max(axis=0))
    x0, x1, y0, y1 = columns[0], columns[-1] + 1, rows[0], rows[-1] + 1
    if max(x1 - x0, y1 - y0) > limit:
        raise ValueError(f"object of {x1 - x0}x{y1 - y0} pixels is larger than {limit}")
    return np.ascontiguousarray(picture[y0:y1, x0:x1]), (int(x0), int(y0))


def facts(picture: Rgba, kind: str, name: str) -> dict[str, Any]:
    """Return the metadata that can be measured on the picture itself."""
    solid = picture[..., 3] >= SOLID
    colours = picture[..., :3][solid].astype(np.float64)
    light = colours @ np.array([0.299, 0.587, 0.114]) / 255
    height, width = solid.shape
    return {
        "format": 1,
        "kind": kind,
        "name": name,
        "size": [round(width / FIELD_SIDE, 4), round(height / FIELD_SIDE, 4)],
        "pixels": int(solid.sum()),
        "area": round(float(solid.sum()) / (np.pi / 4 * FIELD_SIDE**2), 5),
        "mean_brightness": round(float(light.mean()), 4),
        "contrast": round(float(light.std()), 4),
        "mean_colour": [round(float(v), 1) for v in colours.mean(axis=0)],
        **FIELD,
        "partial": False,
        "source": SOURCE,
        "licence": LICENCE,
    }


def draw_instrument(name: str, item: Instrument) -> tuple[Rgba, dict[str, Any]]:
    """Draw one instrument in its pose."""
    side = 420
    ring = item.base is not None and item.base_width == 0
    direction = np.deg2rad(item.angle)
    reach = 240.0 if ring else 165.0
    tip = (side / 2 - reach * float(np.cos(direction)), side / 2 - reach * float(np.sin(direction)))
    canvas, pose = Canvas(side, side), Pose(item.angle, tip)
    item.draw(canvas, pose)
    if not ring:
        canvas.shadow(0.28, (-5.0, 6.0), 6.0)
    picture, (x0, y0) = crop(canvas.stored())
    meta = facts(picture, "instrument", name)
    height, width = picture.shape[:2]
    if ring:
        bearings = np.deg2rad(np.linspace(-34, 34, 9))
        turned = np.stack([264 * np.cos(bearings + direction), 264 * np.sin(bearings + direction)], 1) + tip
        cut, tip_place = turned, turned[4] * 0 + np.array(tip) + 214 * np.array([np.cos(direction), np.sin(direction)])
    else:
        tip_place = np.array(tip)
        cut = np.zeros((0, 2))
        if item.base is not None:
            ends = [(item.base[0] + item.base_width * u, item.base[1]) for u in (-1, -0.5, 0, 0.5, 1)]
            cut = pose.at(ends)
    corner, size = np.array([x0, y0]), np.array([width, height])
    meta |= {
        "called": CALLED[name],
        "centre": list(item.centre),
        "angle": item.angle,
        "tip": [round(float(v), 4) for v in (tip_place - corner) / size],
        "cut": [[round(float(v), 4) for v in point] for point in (cut - corner) / size],
    }
    return picture, meta


def build() -> list[tuple[Rgba, dict[str, Any]]]:
    """Draw everything."""
    done = [draw_instrument(name, item) for name, item in INSTRUMENTS.items()]
    for kind, drawers in (("feces", FECES), ("blood", BLOOD)):
        for name, (width, height, seed, draw) in drawers.items():
            canvas = Canvas(width, height)
            draw(canvas, np.random.default_rng(seed))
            picture, _ = crop(canvas.stored())
            meta = facts(picture, kind, name) | {"centre": [0.5, 0.5], "angle": 0.0, "tip": [0.5, 0.5], "cut": []}
            done.append((picture, meta))
    return done


def contact_sheet(objects: list[tuple[Rgba, dict[str, Any]]], columns: int = 9, cell: int = 200) -> NDArray[np.uint8]:
    """Return all objects on a tissue-coloured ground, BGR."""
    rows = -(-len(objects) // columns)
    sheet = np.full((rows * cell, columns * cell, 3), (70, 95, 175), np.uint8)
    for index, (picture, meta) in enumerate(objects):
        scale = min((cell - 24) / max(picture.shape[:2]), 1.0)
        size = (int(picture.shape[1] * scale), int(picture.shape[0] * scale))
        small = cv2.resize(picture, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        y, x = index // columns * cell + 4, index % columns * cell + 8
        patch = sheet[y : y + size[1], x : x + size[0]]
        alpha = small[..., 3:] / 255
        patch[:] = (small[..., 2::-1] * alpha + patch * (1 - alpha)).astype(np.uint8)
        below = (x, index // columns * cell + cell - 5)
        cv2.putText(sheet, meta["name"], below, cv2.FONT_HERSHEY_SIMPLEX, 0.36, (255, 255, 255), 1, cv2.LINE_AA)
    return sheet


def write_picture(target: Path, picture: Rgba) -> int:
    """Write an RGB or RGBA picture as lossless WebP, the smallest that OpenCV reads; return its bytes."""
    Pillow.fromarray(picture).save(target, "WEBP", lossless=True, quality=100, method=6, exact=True)
    return target.stat().st_size


def write_swatches(out: Path) -> None:
    """Write the swatches of matter beside the pictures."""
    total = 0
    for number, ((kind, name), matter) in enumerate(SWATCHES.items()):
        pictures = draw_swatch(matter, np.random.default_rng(2600 + number))
        for part, picture in zip(("albedo", "surface"), pictures, strict=True):
            total += write_picture(out / kind / f"{name}.{part}.webp", picture)
    print(f"{len(SWATCHES)} swatches, {total / 1e6:.2f} MB, in {out}")


def main() -> None:
    """Write the library, and the sheet when asked for."""
    options = argparse.ArgumentParser(description="Draw the bundled object library.")
    options.add_argument("--out", type=Path, default=ROOT / "medtest" / "relations" / "objects" / "bundled")
    options.add_argument("--sheet", type=Path, default=None, help="also write a contact sheet (PNG)")
    options.add_argument("--only-swatches", action="store_true", help="leave the pictures as they are")
    chosen = options.parse_args()
    if chosen.only_swatches:
        write_swatches(chosen.out)
        return
    objects = build()
    total = 0
    for picture, meta in objects:
        folder = chosen.out / meta["kind"]
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{meta['name']}.webp"
        total += write_picture(target, picture)
        target.with_suffix(".json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    write_swatches(chosen.out)
    print(f"{len(objects)} objects, {total / 1e6:.2f} MB, in {chosen.out}")
    if chosen.sheet is not None:
        cv2.imwrite(str(chosen.sheet), contact_sheet(objects))


if __name__ == "__main__":
    main()
