"""Common data types of seeds, relations, systems, oracles, runner and results.

All values are small and frozen. Images are ``uint8`` RGB, H×W×3, unless the seed's :class:`ImageSpec` says otherwise
(series of scales, volumes). Masks are ``bool`` H×W, probabilities ``float32`` in [0, 1]. The module imports only NumPy
and its sibling modules (:mod:`medtest.core.address`, ``outputs``, ``probes``, ``scenes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from medtest.core.address import CONTROLS as CONTROLS
from medtest.core.address import ID_PATTERN as ID_PATTERN
from medtest.core.address import REMOVE as REMOVE
from medtest.core.address import SOURCE as SOURCE
from medtest.core.address import UNCHANGED as UNCHANGED
from medtest.core.address import Address as Address
from medtest.core.address import Peers as Peers
from medtest.core.address import image_sha256 as image_sha256
from medtest.core.outputs import AnswerOutput as AnswerOutput
from medtest.core.outputs import Classes as Classes
from medtest.core.outputs import Displacements as Displacements
from medtest.core.outputs import Image as Image
from medtest.core.outputs import ImageOutput as ImageOutput
from medtest.core.outputs import LabelOutput as LabelOutput
from medtest.core.outputs import Mask as Mask
from medtest.core.outputs import MaskOutput as MaskOutput
from medtest.core.outputs import Output as Output
from medtest.core.outputs import PictureOutput as PictureOutput
from medtest.core.outputs import Probability as Probability
from medtest.core.outputs import RegionOutput as RegionOutput
from medtest.core.scenes import Json as Json
from medtest.core.scenes import Prompt as Prompt

Params: TypeAlias = Mapping[str, Json]
T = TypeVar("T")

NO_IMAGE: Image = np.zeros((0, 0, 3), np.uint8)
"""Placeholder image of cases whose input is a prompt."""
NO_IMAGE.setflags(write=False)


class Verdict(StrEnum):
    """Verdict of a case. ERROR and SKIP are left out of every denominator and counted separately."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    ERROR = "ERROR"
    SKIP = "SKIP"


class ReasonCode(StrEnum):
    """Cause of an ERROR or SKIP, recorded in ``reason_code``; empty for PASS and FAIL.

    The codes up to ``ORACLE_ERROR`` belong to ERROR, the others to SKIP. docs/read-the-results.md explains each.
    """

    NONE = ""
    SEED_ERROR = "seed_error"
    RELATION_ERROR = "relation_error"
    SYSTEM_ERROR = "system_error"
    INVALID_ANSWER = "invalid_answer"
    TIMEOUT = "timeout"
    CRASH = "crash"
    READER_ERROR = "reader_error"
    ORACLE_ERROR = "oracle_error"
    NOT_APPLICABLE = "not_applicable"
    LESION_INVISIBLE = "lesion_invisible"
    TARGET_UNREACHABLE = "target_unreachable"
    FOLLOW_UP_NOT_STORED = "follow_up_not_stored"
    FOLLOW_UP_LOST = "follow_up_lost"
    SEARCH_OVER = "search_over"
    SEARCH_WAITS = "search_waits"
    NO_PREDICTION = "no_prediction"
    NO_SOURCE_PREDICTION = "no_source_prediction"
    SOURCE_FAILED = "source_failed"
    NO_TRUTH = "no_truth"
    NO_SOURCE_SCORE = "no_source_score"
    SOURCE_SCORE_ZERO = "source_score_zero"
    INPUT_SCORE_ZERO = "input_score_zero"
    SOURCE_WRONG = "source_wrong"
    ANSWER_MAY_CHANGE = "answer_may_change"
    QUESTION_VOID = "question_void"
    ANSWER_UNPARSED = "answer_unparsed"
    ANSWER_TRUNCATED = "answer_truncated"
    ANSWER_MALFORMED = "answer_malformed"
    SOURCE_UNPARSED = "source_unparsed"
    SOURCE_REFUSED = "source_refused"
    INSERTION_UNKNOWN = "insertion_unknown"
    NO_PICTURE = "no_picture"
    NO_SOURCE_PICTURE = "no_source_picture"
    PICTURE_UNREAD = "picture_unread"
    CHANGE_UNREADABLE = "change_unreadable"
    NOTHING_TO_LOSE = "nothing_to_lose"
    PROMPT_UNREADABLE = "prompt_unreadable"
    NOT_JUDGED = "not_judged"


class Reason(NamedTuple):
    """Cause of an ERROR or SKIP: its code, and the text for people."""

    code: ReasonCode = ReasonCode.NONE
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Crafting:
    """Details of a crafted follow-up; attributes that do not apply are None.

    Attributes:
        loss_before: The attack's loss on the source image.
        loss_after: The same on the saved image, 8 bits per channel.
        zero_gradient: Share of (step, pixel in reach, channel) triples with a gradient of exactly 0, in [0, 1].
        float_label: The system's answer to the pixels before rounding: labels joined by ``|`` in class order; None for
            masks.
        queries: Images sent to the system, i.e. forward passes with or without gradient.
        reference: Label that the attack moved away from: ``truth`` or ``answer`` (the system's own, for a seed without
            truth); ``target`` if it moved towards a label.
        smallest_epsilon: With ``minimal``: the smallest ε, in levels of 255, at which the attack flips the answer (an
            upper bound); None if no ε within bounds does.
        found_by: Of several attacks, the one whose image was kept; None for a single attack.
        note: Remark on the search, e.g. that gradients were not finite or were averaged.
        more: Further JSON values; not stored in columns.
    """

    loss_before: float | None = None
    loss_after: float | None = None
    zero_gradient: float | None = None
    float_label: str | None = None
    queries: int | None = None
    reference: str | None = None
    smallest_epsilon: float | None = None
    found_by: str | None = None
    note: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSpec:
    """Meaning of an image's numbers; the default is uint8 RGB.

    Attributes:
        dtype: NumPy dtype name.
        low: Smallest meaningful value.
        high: Largest meaningful value.
        spacing: Size of a pixel or voxel in millimetres per axis; empty where unknown.
        axes: Names of the axes: ``z`` or ``t`` before ``y`` and ``x`` for volumes and films; a last ``c`` is RGB.
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
        """True if the last axis holds colour channels."""
        return self.axes.endswith("c")

    @property
    def span(self) -> float:
        """Width of the meaningful range, high minus low."""
        return self.high - self.low

    def spatial(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an image without its colour axis."""
        return shape[:-1] if self.coloured else shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Question asked about an image.

    Attributes:
        item: Short name, the ``item`` of addresses.
        text: Wording sent to a system.
        kind: Type of the answer, a value of :class:`medtest.language.questions.values.Kind`.
        id: Number of the question in MEDVQA-GI (0 to 17); None for any other question.
        truth: Correct answers for the source image, each accepted; None if unknown.
    """

    item: str
    text: str
    kind: str
    id: int | None = None
    truth: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRef:
    """Reference to a source case that is not loaded yet, cheap enough for plans of a hundred thousand cases.

    Attributes:
        dataset: Data set id.
        seed_id: Unique within the data set.
        cluster: Patient, video or sequence; intervals resample clusters. Defaults to the seed id.
        strata: Further columns of the metadata that stratify tables, as (name, value) pairs.
        items: Questions asked of the image; one empty string if there are none.
        locator: Information for the seed source to load the case (a path below its root, an index); opaque to other
            code.
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
        """Address of the source case."""
        return Address(dataset=self.dataset, seed_id=self.seed_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of a relation on the expected answer, as data read by the oracle.

    Attributes:
        kind: ``"none"``; ``"move"`` (the mask moves by ``data["matrix"]``); ``"warp"`` (it moves by ``displacements``);
            ``"add"`` (something countable was added); ``"scene"`` (a prompt's pool changed,
            :func:`medtest.core.scenes.difference`); ``"remove"`` (the evidence is gone: the answer must become an empty
            mask, "no finding", "cannot tell" or any other answer; :mod:`medtest.core.oracles.controls`).
        data: Details required by the kind; JSON values only. For a warp, the SHA-256 of the displacements.
        displacements: For a warp, float16 H×W×2 (:mod:`medtest.core.oracles.warps`); else None.
        other: With ``remove``: the :class:`PreparedSeed` whose image or prompt is shown instead; else None.
    """

    kind: str = "none"
    data: Params = field(default_factory=dict)
    displacements: Displacements | None = field(default=None, compare=False, repr=False)
    other: Any = field(default=None, compare=False, repr=False)

    @property
    def moves(self) -> bool:
        """True if the expected mask moves."""
        return self.kind in ("move", "warp")

    @property
    def removes(self) -> bool:
        """True if evidence was removed; not for a sham."""
        return self.kind == REMOVE and bool(self.data.get("evidence", True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Seed:
    """Loaded source case, unchanged from its file.

    Attributes:
        ref: Reference to the source case.
        image: H×W×3 uint8 RGB unless ``spec`` says otherwise.
        expected: bool H×W mask of the same size, or None for an unlabelled case. For kind ``region`` a bool array of
            the image's spatial shape; for kind ``image`` the clean image, or None if the image itself is clean.
        avoid: bool H×W rough mask from the user that objects and text must not cover; None if there is none.
        spec: Meaning of the image's numbers.
        kind: Name of the task: ``mask``, ``image``, ``region``, ``label``, ``answer``, or a task from another package.
        properties: Measurements by name, e.g. ``{"liver_variability": 3.74}``.
        classes: For kind ``label``: the classes of the data set. ``expected`` is then the lesion's mask, if any;
            objects are placed outside it.
        labels: For kind ``label``: the expected labels in class order; None for an unlabelled case, empty if no class
            is true.
        asks: For kind ``answer``: the questions, in the order of ``ref.items``. ``expected`` is then the mask of pixels
            that must not be covered, if any.
        together: For kind ``answer``: all questions are asked in one call instead of one by one.
        truth: Expected answer of a task from another package, passed on unchanged; positions should be fractions of the
            image size.
        prompt: The prompt, if the case's input is one; ``image`` is then :data:`NO_IMAGE`.
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
    """Source case prepared for relations and systems: resized, with the masks shared by all relations.

    The arrays are read-only; :meth:`memo` caches values that a relation computes once per seed.

    Attributes:
        ref: Reference to the source case.
        image: uint8 H×W×3 RGB, contiguous.
        mask: Expected lesion mask, bool H×W; None for an unlabelled case.
        original_mask: Expected mask at the size of its file; None for an unlabelled case.
        frame: bool H×W, True on the black frame around the field of view.
        grey: float32 H×W in [0, 1], sigmoid of local brightness; scales pasted objects.
        avoid: The user's rough mask at the prepared size, or None.
        spec: Meaning of the image's numbers.
        kind: Name of the task; for ``region`` the truth is ``mask``, of the spatial shape.
        clean: The clean image of kind ``image``; None for other kinds.
        properties: Measurements of the seed by name.
        classes: For kind ``label``: the classes of the data set.
        labels: For kind ``label``: the expected labels; None for an unlabelled case.
        wide: The wider image (uint8 H'×W'×3) of which ``image`` is the centre crop, so that a warp can bring in pixels
            from outside the crop; None otherwise.
        asks: For kind ``answer``: the questions.
        together: For kind ``answer``: all questions are asked in one call.
        truth: Expected answer of a task from another package, as in the seed.
        prompt: The prompt, if the case's input is one; ``image``, ``frame`` and ``grey`` are then empty.
        peers: All cases of the data set; None where they are unknown.
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
    peers: Peers | None = field(default=None, repr=False)
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def height(self) -> int:
        """Number of rows of the image."""
        return int(self.image.shape[0])

    @property
    def width(self) -> int:
        """Number of columns of the image."""
        return int(self.image.shape[1])

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the prepared image or of the prompt, in hexadecimal."""
        return image_sha256(self.image) if self.prompt is None else self.prompt.sha256

    def memo(self, key: str, make: Callable[[], T]) -> T:
        """Return the cached result of ``make`` for this seed; ``key`` starts with the module name of the caller."""
        if key not in self._memo:
            self._memo[key] = make()
        value: T = self._memo[key]
        return value


@dataclass(frozen=True, kw_only=True, eq=False)
class FollowUp:
    """Follow-up case that a relation made from a seed.

    Attributes:
        image: Same shape and dtype as the seed's image.
        params: The sampled parameters; ``relation.apply(seed, params)`` gives the same bytes again.
        scale: Physical distance from identity, equal for all seeds of one severity.
        effect: Change of the expected answer.
        facts: Numbers for columns of the factor table, e.g. ``lesion_distance`` (pixels from object to lesion).
        crafting: Details of the crafting on a system; None if no system was involved.
        prompt: The changed prompt, if the case's input is one; ``image`` is then :data:`NO_IMAGE`.
        asks: The changed questions by item; questions that are not in it are not asked. None asks the seed's questions.
    """

    image: Image
    params: Params
    scale: float
    effect: Effect = Effect()
    facts: Mapping[str, float] = field(default_factory=dict)
    crafting: Crafting | None = None
    prompt: Prompt | None = None
    asks: Mapping[str, Ask] | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of the image or the prompt, in hexadecimal."""
        return image_sha256(self.image) if self.prompt is None else self.prompt.sha256
