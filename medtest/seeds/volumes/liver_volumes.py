"""The user's CT volumes with segmented livers (or another organ), and their variability."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import ImageSpec, Seed, SeedRef
from medtest.core.errors import Mistake, UserMistakes, typed_error
from medtest.core.files import file_sha256
from medtest.core.files.images import BadFileError
from medtest.core.files.links import is_broken
from medtest.core.plugins import PartSettings
from medtest.phantoms.abdomen.variability import StandardBox, liver_variability, mean_box
from medtest.seeds.base import SeedFaults, SeedKey, SeedProblem, SeedSource
from medtest.seeds.volumes.layouts import VolumePair, find_pairs
from medtest.volumes import read_labels, read_volume, volume_info

_KNOWN = (
    "SLIVER (liver-orig*.mhd, liver-seg*.mhd), 3D-IRCADb (PATIENT_DICOM/, MASKS_DICOM/liver/), LiTS (volume-*.nii, "
    "segmentation-*.nii), imagesTr/ and labelsTr/, images/ and masks/"
)
Millimetres = Annotated[float, Field(gt=0.0, le=2000.0)]


class LiverVolumeSettings(PartSettings):
    """Settings of :class:`LiverVolumes`.

    Attributes:
        organ: Name of the organ's folder of masks, for collections with several (3D-IRCADb).
        labels: Values that mark the organ; empty for every value but 0.
        property: Name under which variability is recorded.
        box: Standard box in millimetres (z, y, x); None takes the mean dimensions of these volumes' organs.
        placement: Placement of the box: ``centroid`` or ``corner``.
        clicks: Number of points given to semi-automatic methods in place of a user's clicks: the organ's deepest.
        low: Value shown as black, Hounsfield units.
        high: Value shown as white.
        on_bad_seed: ``stop`` or ``skip``.
    """

    organ: str = Field(default="liver", pattern=r"[A-Za-z0-9_-]{1,64}")
    labels: list[int] = Field(default=[])
    property: str = Field(default="liver_variability", pattern=r"[a-z][a-z0-9_]{0,63}")
    box: Annotated[list[Millimetres], Field(min_length=3, max_length=3)] | None = None
    placement: Literal["centroid", "corner"] = "centroid"
    clicks: int = Field(default=3, ge=0, le=20)
    low: float = -200.0
    high: float = 300.0
    on_bad_seed: Literal["stop", "skip"] = "stop"


class LiverVolumes(SeedSource):
    """Volumes in NIfTI, DICOM or MetaImage, each with its labels; see :mod:`medtest.seeds.volumes.layouts`."""

    Settings: ClassVar[type[PartSettings]] = LiverVolumeSettings
    task: ClassVar[str] = "region"
    needs_root: ClassVar[bool] = True

    settings: LiverVolumeSettings

    def __init__(self, *, dataset: str, settings: Any, root: Path | None, suite_seed: int) -> None:
        super().__init__(dataset=dataset, settings=settings, root=root, suite_seed=suite_seed)
        self._problems: list[SeedProblem] = []
        self._wrong: dict[SeedKey, tuple[SeedProblem, ...]] = {}
        self._found = 0
        self._layout = ""

    def refs(self) -> Sequence[SeedRef]:
        """Return every volume whose header fits that of its labels, by name.

        Raises:
            UserMistakes: There is no volume, or one is unusable and ``on_bad_seed`` is ``stop``.
        """
        refs = self.places()
        if self._problems and self.settings.on_bad_seed == "stop":
            raise self.refusal(self._problems)
        return refs

    def faults(self) -> SeedFaults:
        """Return unusable volumes; each stops every call if the standard box depends on all organs."""
        if self.settings.on_bad_seed == "skip" or not self._problems:
            return SeedFaults()
        of_seeds = {key: problems for key, problems in self._wrong.items() if problems}
        if self.settings.box is None:
            everything = tuple(self._problems)
            return SeedFaults(of_seeds={(self.dataset, ref.seed_id): everything for ref in self.places()})
        return SeedFaults(of_seeds=of_seeds)

    def refusal(self, problems: Sequence[SeedProblem]) -> UserMistakes:
        """Return a single error report on all unusable volumes."""
        fix = "fix or remove them, or set on_bad_seed: skip"
        wrong = [Mistake(where=problem.file, found=problem.reason, fix=fix) for problem in problems]
        return UserMistakes(wrong, heading=f"{len(wrong)} of {self._found} volumes cannot be used")

    def places(self) -> Sequence[SeedRef]:
        """Return every volume in its place, including unusable ones.

        Raises:
            UserMistakes: There is no volume.
        """
        root = self._root()
        pairs = find_pairs(root, self.settings.organ)
        if not pairs:
            raise Mistake(
                where=f"data={root}", key=self.dataset, found="no volume with its labels", allowed=_KNOWN
            ).as_error()
        self._layout = pairs[0].layout
        self._found = len(pairs)
        problems = {pair.name: _problem(root, pair) for pair in pairs}
        self._wrong = {(self.dataset, name): (problem,) for name, problem in problems.items() if problem is not None}
        self._problems = [problem for problem in problems.values() if problem is not None]
        keeps = self.settings.on_bad_seed == "stop"
        selected = [pair for pair in pairs if keeps or problems[pair.name] is None]
        if not selected:
            raise Mistake(where=f"data={root}", key=self.dataset, found="no volume that can be used").as_error()
        return tuple(
            SeedRef(
                dataset=self.dataset,
                seed_id=pair.name,
                locator=json.dumps([_name(root, pair.volume), _name(root, pair.labels)]),
            )
            for pair in selected
        )

    def load(self, ref: SeedRef) -> Seed:
        """Read one volume with its labels and measure the organ.

        Raises:
            UserMistakes: A file's values cannot be read, or none marks the organ.
        """
        root, settings = self._root(), self.settings
        volume_name, labels_name = json.loads(ref.locator)
        current = labels_name
        try:
            organ, _ = read_labels(root / labels_name, settings.labels)
            if not organ.any():
                raise BadFileError("has no voxel of the organ")
            current = volume_name
            values, info = read_volume(root / volume_name)
        except BadFileError as error:
            raise Mistake(where=current, found=str(error)).as_error() from error
        box = StandardBox(size=tuple(settings.box)) if settings.box is not None else self.mean_box()
        measured = liver_variability(organ, info.spacing, box, placement=settings.placement)
        spec = ImageSpec(
            dtype="float32",
            low=settings.low,
            high=settings.high,
            spacing=info.spacing,
            axes="zyx",
            marks=deepest_points(organ, info.spacing, settings.clicks),
        )
        return Seed(
            ref=ref,
            image=values,
            expected=organ,
            kind="region",
            spec=spec,
            properties={settings.property: measured},
        )

    def mean_box(self) -> StandardBox:
        """Return the box of the mean dimensions of these volumes' organs, computed once per process."""
        names = tuple(str(json.loads(ref.locator)[1]) for ref in self.refs())
        return _mean_box(self._root(), names, tuple(self.settings.labels))

    def digest(self) -> str:
        """Return a SHA-256 over names and contents of all files, and the settings."""
        root = self._root()
        total = hashlib.sha256(json.dumps(self.settings.counted(), sort_keys=True).encode())
        for ref in self.places():
            for name in json.loads(ref.locator):
                for path in _contents(root / name):
                    total.update(_name(root, path).encode())
                    total.update(b"" if is_broken(path) else bytes.fromhex(file_sha256(path)))
        return total.hexdigest()

    def problems(self) -> Sequence[SeedProblem]:
        """Return the volumes left out."""
        return tuple(self._problems) if self.settings.on_bad_seed == "skip" else ()

    def notices(self) -> Sequence[str]:
        """Describe the recognised layout and how variability is measured."""
        reference = "the given box" if self.settings.box is not None else "the mean dimensions of these organs"
        return [f"{self.dataset}: {self._layout}; variability against {reference}, placed by {self.settings.placement}"]

    def _root(self) -> Path:
        if self.root is None:
            raise typed_error("data", "nothing", fix="data=PATH")
        return self.root


def deepest_points(
    organ: NDArray[np.bool_], spacing: Sequence[float], count: int
) -> tuple[tuple[float, float, float], ...]:
    """Return the points of an organ farthest from its surface and from one another, as index coordinates.

    They replace a user's clicks if none were recorded. The search grid has at most about 64 voxels a side.

    Args:
        organ: bool D×H×W.
        spacing: Voxel size, millimetres.
        count: Maximum number of points.
    """
    from scipy import ndimage

    steps = tuple(max(1, -(-n // 64)) for n in organ.shape)
    small = organ[tuple(slice(step // 2, None, step) for step in steps)]
    size = [s * step for s, step in zip(spacing, steps, strict=True)]
    depth = ndimage.distance_transform_edt(np.pad(small, 1), sampling=size)[1:-1, 1:-1, 1:-1]
    axes = [np.arange(n) * s for n, s in zip(small.shape, size, strict=True)]
    points: list[tuple[float, float, float]] = []
    score = depth.copy()
    while len(points) < count and score.max() > 0:
        place = np.unravel_index(int(score.argmax()), score.shape)
        at = [int(n) * step + step // 2 for n, step in zip(place, steps, strict=True)]
        points.append((float(at[0]), float(at[1]), float(at[2])))
        away = sum(
            (axis - axis[int(n)]).reshape([-1 if m == k else 1 for m in range(3)]) ** 2
            for k, (axis, n) in enumerate(zip(axes, place, strict=True))
        )
        score = np.minimum(score, depth * np.minimum(1.0, np.sqrt(away) / 80.0))
    return tuple(points)


@lru_cache(maxsize=8)
def _mean_box(root: Path, names: tuple[str, ...], labels: tuple[int, ...]) -> StandardBox:
    def organs() -> Any:
        for name in names:
            organ, info = read_labels(root / name, labels)
            if organ.any():
                yield organ, info.spacing

    return mean_box(organs())


def _problem(root: Path, pair: VolumePair) -> SeedProblem | None:
    try:
        own = volume_info(pair.volume)
    except BadFileError as error:
        return SeedProblem(file=_name(root, pair.volume), reason=str(error))
    try:
        reason = own.differs(volume_info(pair.labels))
    except BadFileError as error:
        reason = str(error)
    return SeedProblem(file=_name(root, pair.labels), reason=reason) if reason else None


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _contents(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.is_file())
    raw = path.with_suffix(".raw")
    return [path, raw] if path.suffix.lower() == ".mhd" and raw.is_file() else [path]
