"""The vocabulary: what seeds, relations, systems, oracles, runner and results say to one another.

Small frozen values and nothing else. Images cross every border as ``uint8`` RGB, H×W×3, unless a seed's
:class:`ImageSpec` says otherwise (series of scales, volumes). Masks are ``bool`` H×W, probabilities ``float32`` in
[0, 1]. NumPy and other parts of the vocabulary (:mod:`medtest.core.address`, ``outputs``, ``probes``, ``scenes``) are
the only imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from medtest.core.address import ID_PATTERN as ID_PATTERN
from medtest.core.address import SOURCE as SOURCE
from medtest.core.address import UNCHANGED as UNCHANGED
from medtest.core.address import Address as Address
from medtest.core.address import image_sha256 as image_sha256
from medtest.core.crafting import Crafting as Crafting
from medtest.core.outputs import AnswerOutput as AnswerOutput
from medtest.core.outputs import Classes as Classes
from medtest.core.outputs import Image as Image
from medtest.core.outputs import ImageOutput as ImageOutput
from medtest.core.outputs import LabelOutput as LabelOutput
from medtest.core.outputs import Mask as Mask
from medtest.core.outputs import MaskOutput as MaskOutput
from medtest.core.outputs import Output as Output
from medtest.core.outputs import PictureOutput as PictureOutput
from medtest.core.outputs import Probability as Probability
from medtest.core.outputs import RegionOutput as RegionOutput
from medtest.core.scenes import Prompt as Prompt

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
Params: TypeAlias = Mapping[str, Json]
T = TypeVar("T")

NO_IMAGE: Image = np.zeros((0, 0, 3), np.uint8)
"""Stands where a case's input is a prompt."""
NO_IMAGE.setflags(write=False)


class Verdict(StrEnum):
    """What became of a case. ERROR and SKIP leave every denominator and are counted beside it."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    ERROR = "ERROR"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSpec:
    """What the numbers of an image mean; the default is the house's uint8 RGB.

    Attributes:
        dtype: NumPy dtype name.
        low: Smallest meaningful value.
        high: Largest meaningful value.
        spacing: Size of a pixel or voxel in millimetres per axis; empty where unknown.
        axes: What the axes are: ``z`` or ``t`` before ``y`` and ``x`` for volumes and films; a last ``c`` is RGB.
        marks: Points that a person clicked, in index coordinates of the spatial axes, for semi-automatic methods.
    """

    dtype: str = "uint8"
    low: float = 0.0
    high: float = 255.0
    spacing: tuple[float, ...] = ()
    axes: str = "yxc"
    marks: tuple[tuple[float, ...], ...] = ()

    @property
    def coloured(self) -> bool:
        """Whether the last axis is colour."""
        return self.axes.endswith("c")

    @property
    def span(self) -> float:
        """The meaningful range, high minus low."""
        return self.high - self.low

    def spatial(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an image without its colours."""
        return shape[:-1] if self.coloured else shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question that is asked of an image.

    Attributes:
        item: Its short name, the ``item`` of addresses.
        text: The words that are put to a system.
        kind: Type of its answer, a value of :class:`medtest.language.questions.values.Kind`.
        id: Number of the question in MEDVQA-GI (0 to 17); None for any other question.
        truth: The true answers to the source image, any of which may be given; None where none is known.
    """

    item: str
    text: str
    kind: str
    id: int | None = None
    truth: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRef:
    """A source case that is not loaded yet: cheap, so that a plan may hold a hundred thousand.

    Attributes:
        dataset: Data set id.
        seed_id: Unique within the data set.
        cluster: Patient, video or sequence; intervals resample clusters. The seed id where nothing is known.
        strata: Further columns of the metadata that stratify tables, as (name, value) pairs.
        items: Questions asked of the image; one empty string where there are none.
        locator: What the seed source needs to load it (a path below its root, an index); opaque to everyone else.
    """

    dataset: str
    seed_id: str
    cluster: str = ""
    strata: tuple[tuple[str, str], ...] = ()
    items: tuple[str, ...] = ("",)
    locator: str = ""

    def __post_init__(self) -> None:
        if not self.cluster:
            object.__setattr__(self, "cluster", self.seed_id)

    @property
    def source(self) -> Address:
        """The address of the source case."""
        return Address(dataset=self.dataset, seed_id=self.seed_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a relation does to the expected answer. Data, read by the oracle.

    Attributes:
        kind: ``"none"``; ``"move"`` (the mask moves by ``data["matrix"]``); ``"add"`` (something countable was added);
            ``"scene"`` (a prompt's pool became another, :func:`medtest.core.scenes.difference`).
        data: Whatever the kind needs, JSON values only.
    """

    kind: str = "none"
    data: Params = field(default_factory=dict)

    @property
    def adds(self) -> bool:
        """Whether something countable was put into the image."""
        return self.kind == "add"


@dataclass(frozen=True, kw_only=True, eq=False)
class Seed:
    """A loaded source case, as its file holds it.

    Attributes:
        ref: Where it comes from.
        image: H×W×3 uint8 RGB unless ``spec`` says otherwise.
        expected: bool H×W mask of the same size, or None for an unlabelled case. Of kind ``region`` a bool array of the
            image's spatial shape; of kind ``image`` the clean image, None where the image itself is clean.
        avoid: bool H×W rough mask that objects and text keep off, given by the user; None where there is none.
        spec: What the image's numbers mean.
        kind: Name of the task: ``mask``, ``image``, ``region``, ``label``, ``answer``, or one of another package.
        properties: What was measured of it by name, e.g. ``{"liver_variability": 3.74}``.
        classes: Of kind ``label``: the classes of the data set. ``expected`` is then the lesion's mask where there is
            one, off which objects are placed.
        labels: Of kind ``label``: the expected labels in the order of the classes; None for an unlabelled case, empty
            where no class is true.
        asks: Of kind ``answer``: the questions, in the order of ``ref.items``. ``expected`` is then the mask of what
            must not be covered, where there is one.
        together: Of kind ``answer``: all questions are asked in one call, and not one by one.
        truth: What a task of another package expects, handed on as it is: places in it are best fractions of the image.
        prompt: Where the case's input is a prompt, that; ``image`` is then :data:`NO_IMAGE`.
    """

    ref: SeedRef
    image: Image = field(default_factory=lambda: NO_IMAGE)
    expected: Mask | Image | None = None
    avoid: Mask | None = None
    spec: ImageSpec = ImageSpec()
    kind: str = "mask"
    properties: Mapping[str, float] = field(default_factory=dict)
    classes: Classes | None = None
    labels: tuple[str, ...] | None = None
    asks: tuple[Ask, ...] = ()
    together: bool = False
    truth: Any = None
    prompt: Prompt | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSeed:
    """A source case ready for relations and systems: resized, with the masks every relation shares.

    The arrays are read-only; :meth:`memo` keeps what a relation computes once per seed.

    Attributes:
        ref: Where it comes from.
        image: uint8 H×W×3 RGB, contiguous.
        mask: Expected lesion mask, bool H×W; None for an unlabelled case.
        original_mask: Expected mask at its file's size; None for an unlabelled case.
        frame: bool H×W, True on the black frame around the field of view.
        grey: float32 H×W in [0, 1], sigmoid of local brightness; scales what is pasted.
        avoid: The user's rough mask at the prepared size, or None.
        spec: What the image's numbers mean.
        kind: Name of the task; of ``region`` the truth is ``mask``, of the spatial shape.
        clean: The clean image of kind ``image``; None for other kinds.
        properties: What was measured of the seed, by name.
        classes: Of kind ``label``: the classes of the data set.
        labels: Of kind ``label``: the expected labels; None for an unlabelled case.
        wide: Where the image is a crop from the middle of a wider one, that one (uint8 H'×W'×3), so that a warp can
            bring in what lies beyond the crop; None else.
        asks: Of kind ``answer``: the questions.
        together: Of kind ``answer``: all questions are asked in one call.
        truth: What a task of another package expects, as the seed has it.
        prompt: Where the case's input is a prompt, that; ``image``, ``frame`` and ``grey`` are then empty.
    """

    ref: SeedRef
    image: Image
    mask: Mask | None
    original_mask: Mask | None
    frame: Mask
    grey: Probability
    avoid: Mask | None = None
    spec: ImageSpec = ImageSpec()
    kind: str = "mask"
    clean: Image | None = None
    properties: Mapping[str, float] = field(default_factory=dict)
    classes: Classes | None = None
    labels: tuple[str, ...] | None = None
    wide: Image | None = None
    asks: tuple[Ask, ...] = ()
    together: bool = False
    truth: Any = None
    prompt: Prompt | None = None
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def height(self) -> int:
        """Rows of the image."""
        return int(self.image.shape[0])

    @property
    def width(self) -> int:
        """Columns of the image."""
        return int(self.image.shape[1])

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the prepared image's bytes, or of the prompt, in hexadecimal."""
        return image_sha256(self.image) if self.prompt is None else self.prompt.sha256

    def memo(self, key: str, make: Callable[[], T]) -> T:
        """Return what ``make`` gave the first time for this seed; ``key`` starts with the caller's module name."""
        if key not in self._memo:
            self._memo[key] = make()
        value: T = self._memo[key]
        return value


@dataclass(frozen=True, kw_only=True, eq=False)
class FollowUp:
    """What a relation made of a seed.

    Attributes:
        image: Same shape and dtype as the seed's image.
        params: The sampled parameters; ``relation.apply(seed, params)`` gives the same bytes again.
        scale: Physical distance from identity; the same for all seeds of one severity.
        effect: What happened to the expected answer.
        facts: Numbers worth a column of the factor table, as ``lesion_distance`` (pixels from object to lesion).
        crafting: What is known of how it was made on a system; None where it was not.
        prompt: Where the case's input is a prompt, the changed one; ``image`` is then :data:`NO_IMAGE`.
    """

    image: Image
    params: Params
    scale: float
    effect: Effect = Effect()
    facts: Mapping[str, float] = field(default_factory=dict)
    crafting: Crafting | None = None
    prompt: Prompt | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the image or the prompt, in hexadecimal."""
        return image_sha256(self.image) if self.prompt is None else self.prompt.sha256
