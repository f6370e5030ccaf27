"""Object library: a folder of cut-outs for pasting, each a picture with a JSON file of facts.

    <library>/instrument/snare_open.png     RGBA, straight alpha
    <library>/instrument/snare_open.json    an :class:`ObjectInfo`
    <library>/feces/clump_brown.albedo.png   optional, with
    <library>/feces/clump_brown.surface.png  a swatch of its matter
                                              (:mod:`medtest.relations.objects.matter.swatches`)

Pictures are PNG or lossless WebP (``.webp``, as the bundled ones). Sub-folders are only for display; the JSON gives the
kind. A library may be untrusted: files are read within bounds on number, bytes and pixels, nothing outside the folder
is opened, and problems are reported with their file.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Generic, Literal, Self, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files.images import png_header, webp_header
from medtest.core.files.paths import home, package_folder

BUNDLED = "bundled"
KINDS = ("instrument", "feces", "blood")
SOLID = 77
"""Alpha (0–255) from which a pixel counts as the object; below are shadows and feathered edges."""
LARGEST_SIDE = 2048
SMALLEST_SIDE = 8
LARGEST_PICTURE = 16 * 2**20
LARGEST_JSON = 64 * 2**10
MOST_OBJECTS = 5000
_KEPT_BYTES = 96 * 2**20

Rgba = NDArray[np.uint8]
T = TypeVar("T")
Fraction = list[float]


class BoundedCache(Generic[T]):
    """Thread-safe cache bounded in bytes that drops the least recently used values."""

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self._limit, self._size = limit, size
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, computed by ``make`` if missing."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is not None:
                self._kept.move_to_end(key)
                return entry[0]
        value = make()
        size = self._size(value)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = (value, size)
                self._bytes += size
                while self._bytes > self._limit and len(self._kept) > 1:
                    _, (_, freed) = self._kept.popitem(last=False)
                    self._bytes -= freed
        return value

    @property
    def used(self) -> int:
        """Bytes in use."""
        return self._bytes


class ObjectInfo(BaseModel):
    """Facts of a cut-out: its original position and appearance.

    Positions within the cut-out are fractions of its width and height, positions in the field fractions of the
    bounding box of the field of view.

    Attributes:
        format: Version of this format.
        kind: instrument, feces or blood.
        name: Unique within its kind.
        centre: Centre of the cut-out in the original field, [x, y].
        angle: Direction from the tip to the shaft's exit from the field, degrees clockwise from +x; 0 without shaft.
        size: Width and height as fractions of the original field's.
        area: Fraction of the original field covered by the object.
        pixels: Pixels of the cut-out with alpha ≥ ``SOLID``.
        tip: The end that is always visible, [x, y] within the cut-out (may be slightly outside).
        cut: Points [x, y] within the cut-out on the original field's border; empty for free objects.
        mean_brightness: Mean luma of the object, 0–1.
        contrast: Standard deviation of its luma, 0–1.
        mean_colour: Mean R, G, B, 0–255.
        field_brightness: Mean luma of the original field, 0–1.
        field_contrast: Standard deviation of the original field's luma, 0–1.
        field_colour: Shares of R, G and B in the original field's mean colour; they sum to 1.
        called: Correct names in the vocabulary of typed answers
            (:mod:`medtest.language.questions.answers`: ``biopsy_forceps``); empty if unknown.
        partial: Whether a corner of the image cuts it (report 4.5: left out by default).
        source: Its source.
        licence: Its licence.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    kind: Literal["instrument", "feces", "blood"]
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    centre: Fraction = Field(min_length=2, max_length=2)
    angle: float = Field(ge=-360, le=360, allow_inf_nan=False)
    size: Fraction = Field(min_length=2, max_length=2)
    area: float = Field(gt=0, le=1)
    pixels: int = Field(ge=16, le=LARGEST_SIDE**2)
    tip: Fraction = Field(min_length=2, max_length=2)
    cut: list[Fraction] = Field(default=[], max_length=32)
    mean_brightness: float = Field(ge=0, le=1)
    contrast: float = Field(ge=0, le=1)
    mean_colour: list[float] = Field(min_length=3, max_length=3)
    field_brightness: float = Field(gt=0, le=1)
    field_contrast: float = Field(ge=0, le=1)
    field_colour: list[float] = Field(min_length=3, max_length=3)
    called: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]] = Field(default=[], max_length=8)
    partial: bool = False
    source: str = Field(min_length=1, max_length=500)
    licence: str = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _check_ranges(self) -> Self:
        for name, low, high in (("centre", -0.5, 1.5), ("size", 0.0, 3.0), ("tip", -1.0, 2.0)):
            if not all(low <= value <= high for value in getattr(self, name)):
                raise ValueError(f"{name} outside [{low}, {high}]")
        if any(len(point) != 2 or not all(-1 <= value <= 2 for value in point) for point in self.cut):
            raise ValueError("cut: every point is [x, y] within [-1, 2]")
        if not all(0 <= value <= 255 for value in self.mean_colour):
            raise ValueError("mean_colour outside [0, 255]")
        if not all(0 <= value <= 1 for value in self.field_colour):
            raise ValueError("field_colour outside [0, 1]")
        return self


class ObjectLibrary:
    """Checked index of a library; pictures are decoded on first use.

    Args:
        folder: The library.
        label: Name in messages, never this machine's path.

    Raises:
        UserMistakes: The folder has problems; all are reported at once.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self.folder, self.label = folder, label
        self._files: dict[tuple[str, str], Path] = {}
        self._infos: dict[str, list[ObjectInfo]] = {kind: [] for kind in KINDS}
        self._pictures: BoundedCache[Rgba] = BoundedCache(_KEPT_BYTES, lambda picture: picture.nbytes)
        self.digest = self._index()

    def __reduce__(self) -> tuple[type[Self], tuple[Path, str]]:
        """Index the folder again in the process that receives the library."""
        return type(self), (self.folder, self.label)

    def kind(self, kind: str) -> tuple[ObjectInfo, ...]:
        """Return all objects of a kind, by name."""
        return tuple(self._infos[kind])

    def info(self, kind: str, name: str) -> ObjectInfo:
        """Return one object's facts.

        Raises:
            UserMistakes: There is no object of this name (for example parameters of another library).
        """
        for info in self._infos[kind]:
            if info.name == name:
                return info
        names = [info.name for info in self._infos[kind]]
        raise Mistake(
            where=f"object library {self.label}",
            key=kind,
            found=repr(name),
            allowed=", ".join(names[:20]),
            nearest=nearest_name(name, names),
        ).as_error()

    def picture(self, kind: str, name: str) -> Rgba:
        """Return an object's picture, read-only H×W×4 uint8 RGBA with straight alpha.

        Raises:
            UserMistakes: The file has changed or cannot be decoded.
        """
        return self._pictures.get((kind, name), lambda: self._decode(self.info(kind, name)))

    def beside(self, info: ObjectInfo, part: str) -> Path:
        """Return the file of a further picture of an object, which may not exist."""
        picture = self._files[info.kind, info.name]
        return _picture_file(picture.with_name(f"{picture.stem}.{part}"))

    def _decode(self, info: ObjectInfo) -> Rgba:
        path = self._files[info.kind, info.name]
        where = f"{self.label}/{path.relative_to(self.folder).as_posix()}"
        problem = picture_problem(path)
        decoded = None
        if not problem:
            data = np.frombuffer(path.read_bytes(), np.uint8)
            decoded = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
            if decoded is None:
                problem = "cannot be decoded"
            elif decoded.ndim != 3 or decoded.shape[2] != 4 or decoded.dtype != np.uint8:
                problem = "is not an 8-bit RGBA picture"
        if decoded is not None and not problem:
            solid = int(np.count_nonzero(decoded[..., 3] >= SOLID))
            if abs(solid - info.pixels) > 0.02 * info.pixels + 2:
                problem = f"has {solid} object pixels, its JSON says {info.pixels}"
        if problem or decoded is None:
            raise Mistake(where=where, found=problem, fix="make the library again").as_error()
        picture: Rgba = np.ascontiguousarray(cv2.cvtColor(decoded, cv2.COLOR_BGRA2RGBA))
        picture.flags.writeable = False
        return picture

    def _index(self) -> str:
        mistakes: list[Mistake] = []
        digest = hashlib.sha256(b"medtest object library 1")
        for path in self._json_files():
            relative = path.relative_to(self.folder).as_posix()
            where = f"{self.label}/{relative}"
            picture = _picture_file(path.with_suffix(""))
            problem = outside(self.folder, path) or outside(self.folder, picture) or picture_problem(picture)
            if problem:
                fix = "give each object a picture (PNG or lossless WebP) and a JSON of one name"
                mistakes.append(Mistake(where=where, found=problem, fix=fix))
                continue
            text = path.read_bytes()
            entry = _read_info(where, text)
            if isinstance(entry, Mistake):
                mistakes.append(entry)
                continue
            if (entry.kind, entry.name) in self._files:
                mistakes.append(Mistake(where=where, key="name", found=f"a second {entry.kind} {entry.name!r}"))
                continue
            self._files[entry.kind, entry.name] = picture
            self._infos[entry.kind].append(entry)
            for part in (relative.encode(), text, picture.read_bytes()):
                digest.update(len(part).to_bytes(8, "big"))
                digest.update(part)
        if mistakes:
            raise UserMistakes(mistakes[:50], f"object library {self.label}: {len(mistakes)} mistakes")
        for infos in self._infos.values():
            infos.sort(key=lambda info: info.name)
        return digest.hexdigest()

    def _json_files(self) -> list[Path]:
        if not self.folder.is_dir():
            raise Mistake(
                where=f"object library {self.label}",
                found="no such folder",
                allowed=f"{BUNDLED}, or a library that `medtest objects build` wrote",
                fix="name a library that exists, or set library_folder=PATH on the command line",
            ).as_error()
        files = sorted(self.folder.glob("*.json")) + sorted(self.folder.glob("*/*.json"))
        if not files or len(files) > MOST_OBJECTS:
            raise Mistake(
                where=f"object library {self.label}",
                found=f"{len(files)} objects",
                allowed=f"1 to {MOST_OBJECTS}, each a picture (PNG or lossless WebP) and a JSON of one name",
            ).as_error()
        return files


def load_library(library: str = BUNDLED, folder: str | None = None) -> ObjectLibrary:
    """Return a library, read once per process and folder content.

    Args:
        library: ``bundled``, or the name of a folder under ``objects/`` of the working directory (or MEDTEST_HOME).
        folder: The library's folder, given by the user; takes precedence over ``library``.

    Raises:
        UserMistakes: There is no such library, or its files have problems.
    """
    if folder is not None:
        place, label = Path(folder).expanduser(), Path(folder).name
    elif library == BUNDLED:
        place, label = package_folder() / "relations" / "objects" / "bundled", BUNDLED
    else:
        place, label = home() / "objects" / library, library
    return _loaded(place.resolve(), label, _stamp(place))


@lru_cache(maxsize=8)
def _loaded(folder: Path, label: str, stamp: tuple[tuple[str, int, int], ...]) -> ObjectLibrary:
    return ObjectLibrary(folder, label)


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return a stamp that changes with the library's files, without reading them."""
    if not folder.is_dir():
        return ()
    entries = []
    for path in sorted([*folder.glob("*.*"), *folder.glob("*/*.*")])[: 4 * MOST_OBJECTS]:
        status = path.lstat()
        entries.append((path.relative_to(folder).as_posix(), status.st_size, status.st_mtime_ns))
    return tuple(entries)


def outside(folder: Path, path: Path) -> str:
    """Return the reason if a file is not in the library's folder; "" if it is."""
    if not path.is_file():
        return f"{path.name} is missing"
    return "" if path.resolve().is_relative_to(folder) else f"{path.name} is a link that leads out of the library"


def _picture_file(stem: Path) -> Path:
    """Return the picture of a name: WebP if there is one, else PNG."""
    files = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".webp", ".png")]
    return next((path for path in files if path.is_file()), files[-1])


def picture_problem(path: Path, colours: Literal["RGB", "RGBA"] = "RGBA") -> str:
    """Return the problem of a picture file, judged by its size and header alone; "" without problem."""
    size = path.stat().st_size
    if size > LARGEST_PICTURE:
        return f"{path.name} has {size} bytes, {LARGEST_PICTURE} are allowed"
    with path.open("rb") as file:
        head = file.read(33)
    is_webp = path.suffix == ".webp"
    header = webp_header(head) if is_webp else png_header(head)
    if header is None:
        return f"{path.name} is not a {'lossless WebP' if is_webp else 'PNG'}"
    width, height, *kind = header
    if not (SMALLEST_SIDE <= width <= LARGEST_SIDE and SMALLEST_SIDE <= height <= LARGEST_SIDE):
        return f"{path.name} is {width}×{height}, sides of {SMALLEST_SIDE} to {LARGEST_SIDE} are allowed"
    has_alpha = colours == "RGBA"
    if kind != ([has_alpha] if is_webp else [8, 6 if has_alpha else 2]):
        return f"{path.name} is not an 8-bit {colours} picture"
    return ""


def _read_info(where: str, text: bytes) -> ObjectInfo | Mistake:
    if len(text) > LARGEST_JSON:
        return Mistake(where=where, found=f"{len(text)} bytes", allowed=f"at most {LARGEST_JSON}")
    try:
        return ObjectInfo.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key, fields = ".".join(str(part) for part in first["loc"]), list(ObjectInfo.model_fields)
        if not key:
            return Mistake(where=where, found=f"not JSON with keys and values: {first['msg'][:80]}")
        if first["type"] == "extra_forbidden":
            allowed, nearest = ", ".join(fields), nearest_name(key, fields)
            return Mistake(where=where, key=key, found="unknown key", allowed=allowed, nearest=nearest)
        return Mistake(where=where, key=key, found=repr(first.get("input"))[:80], allowed=str(first["msg"]))
