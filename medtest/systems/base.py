"""Base class of systems under test.

A system is created twice: once in the parent process, which only asks for its name, fingerprint and mistakes and must
not load anything heavy, and once in each worker, which calls :meth:`System.open` and then :meth:`System.predict`. It
must therefore be picklable (its settings are), and torch, onnxruntime and similar libraries are imported in
:meth:`System.open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Address, Classes, Image, ImageSpec, Json
from medtest.core.errors import Mistake
from medtest.core.plugins import Part, PartSettings
from medtest.core.probes import Need
from medtest.core.tasks.base import Task, task_of


@dataclass(frozen=True, slots=True)
class Missing:
    """No answer available for this case, through no fault of the system; the case becomes SKIP with this reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """Answer of a classifier that also segments.

    Attributes:
        scores: Same as the answer of a classifier without a mask, see :mod:`medtest.systems.classification.answers`.
        mask: Same as the answer of a segmenter, see :mod:`medtest.core.tasks.border`; None if there is none.
    """

    scores: Any
    mask: Any = None


RawAnswer: TypeAlias = "NDArray[Any] | LabelAnswer | Missing | int | str | list[str] | list[int] | dict[str, float]"
"""For segmentation: h×w of any size, bool (a mask), float (probability in [0, 1]) or uint8 (probability × 255).

For series see :mod:`medtest.core.tasks.series_border`, for labels :mod:`medtest.systems.classification.answers`.
"""

ANSWER_FORMS: tuple[str, ...] = ("probabilities", "logits", "labels")
"""Forms that a classifier's answers may take."""


LABEL_ONLY: dict[str, Any] = {"label_only": True}
"""``json_schema_extra`` of settings that only apply to labels; digests of other runs ignore them."""


class SystemSettings(PartSettings):
    """Settings common to all systems.

    Attributes:
        trained_on: Data sets used to train the system; tables mark them.
    """

    trained_on: list[str] = Field(default=[])

    def own(self) -> dict[str, Any]:
        """Return the settings that are specific to this system."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name not in SystemSettings.model_fields
        }


class System(Part, ABC):
    """System under test.

    Args:
        name: Id in the suite or on the command line.
        settings: An instance of the class's ``Settings``.

    Attributes:
        tasks: Names of the tasks the system supports, the default first; several if the user chooses the form of the
            answer (a function, a folder).
        kind: Name of the task the system runs, one of ``tasks``, determined by the suite's seeds.
        squared: Whether the suite resizes images to a square before any system sees them.
        needs_device: Whether the system uses ``device=``.
        in_process: Whether the system is an object of the calling program and cannot be sent to another process.
        draws_calls: Whether the system pulls calls from a stream and answers in any order
            (:class:`medtest.systems.answering.asking.AskingSystem`); others receive batches.
        finished: Whether its answers were made before the run, so that it has none to a new picture.
        file_format: Format of the system's file, for networks that exist in several formats; "" otherwise. It is
            appended to the system's name.
        probed: The most a probe of this system can provide: scores for networks that run, nothing for stored answers.
        shown: Name in records for systems that the user named or supplied; "" for the system's own name.
        classes: Task ``label`` only: meaning of the scores, in their order; None for the seeds' classes in the seeds'
            order.
        answer_form: Task ``label`` only: one of :data:`ANSWER_FORMS`.
    """

    classes: Classes | None = None
    answer_form: str = "probabilities"
    Settings: ClassVar[type[SystemSettings]] = SystemSettings
    settings: SystemSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask",)
    needs_device: ClassVar[bool] = False
    in_process: ClassVar[bool] = False
    draws_calls: ClassVar[bool] = False
    finished: ClassVar[bool] = False
    file_format: ClassVar[str] = ""
    probed: ClassVar[Need] = Need.SCORES

    @classmethod
    def tasks_of(cls, settings: Any) -> tuple[str, ...]:
        """Return the tasks the system supports under these settings."""
        return cls.tasks

    def __init__(self, name: str, settings: SystemSettings) -> None:
        self.name = name
        self.settings = settings
        self.kind: str = type(self).tasks[0]
        self.squared = False
        self.shown = ""

    @property
    def task(self) -> Task:
        """Task that the system runs."""
        return task_of(self.kind)

    @property
    def record_name(self) -> str:
        """Name in records, folders, tables and MLflow, e.g. ``pranet-compact``."""
        return self.shown or self.own_name()

    def own_name(self) -> str:
        """Return the default name, used if the user gives none."""
        return self.name

    def notice(self) -> str:
        """Return a line to show before the run ("the compact network runs …"), or an empty string."""
        return ""

    def resolved(self) -> dict[str, Json]:
        """Return settings whose values follow from the suite, as covered by digests."""
        return {}

    def check(self) -> Sequence[Mistake]:
        """Return the user's mistakes that can be detected without loading (a missing file, a wrong suffix)."""
        return ()

    @abstractmethod
    def fingerprint(self) -> dict[str, Json]:
        """Return everything beyond the settings that determines the answers: SHA-256 of weights, files or folders."""

    @abstractmethod
    def open(self, *, device: str, threads: int) -> None:
        """Load the system. Called once in each worker, before any :meth:`predict`.

        Args:
            device: ``"cpu"`` or ``"cuda:N"`` (``auto`` is already resolved).
            threads: Intra-op threads this process may use.
        """

    @property
    def inner(self) -> System:
        """System that computes the answers: this one, or the one it wraps."""
        return self

    def offers(self) -> Need:
        """Return the kind of probe that this system provides to relations; called before anything is loaded.

        Nothing for systems that draw calls (models over an API), for stored answers, for labels without scores, and for
        tasks other than labels or masks of pictures.
        """
        task = self.task
        pictures = (task.labels or task.masks) and not task.series and not task.stream
        has_scores = not task.labels or self.answer_form != "labels"
        return type(self).probed if pictures and has_scores and not self.draws_calls else Need.NOTHING

    @abstractmethod
    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer one batch.

        Args:
            images: uint8 RGB H×W×3 each; all of one size with ``prepare.size: 512``, of different sizes with
                ``native``.
            addresses: Addresses of the cases, for systems that read answers from files. A network must not use them.

        Returns:
            One answer per image (a map, or a form that :mod:`medtest.systems.classification.answers` accepts for
            labels). If an exception is raised, each case of the batch is retried once on its own and becomes an ERROR
            if it fails.
        """

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Answer one batch of a series; by default :meth:`predict`, which ignores the specs.

        Args:
            images: Of any dtype, range and dimension; read-only.
            specs: Meaning of each image's values and axes.
            addresses: As in :meth:`predict`.
        """
        return self.predict(images, addresses)

    def answer_batch(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Answer one batch, of a series or of pictures as the task says; arguments as in :meth:`process`."""
        return self.process(images, specs, addresses) if self.task.series else self.predict(images, addresses)

    def close(self) -> None:
        """Release the resources acquired by :meth:`open`."""
        return


class Algorithm(System):
    """System that is fully determined by its settings. Subclasses implement :meth:`answer`, or :meth:`process`."""

    def fingerprint(self) -> dict[str, Json]:
        """Return an empty fingerprint: settings and revision suffice. Subclasses that read files add their SHA-256."""
        return {}

    def open(self, *, device: str, threads: int) -> None:
        """Do nothing, because there is nothing to load."""

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer 8-bit RGB images."""
        return self.process(images, [ImageSpec()] * len(images), addresses)

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Answer images of any dtype and dimension, one by one; the first failure raises."""
        return [self.answer(image, spec) for image, spec in zip(images, specs, strict=True)]

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Answer one image; arguments as in :meth:`process`."""
        raise NotImplementedError


class Segmenter(Algorithm):
    """Algorithm that maps an image of any dimension to a region. Subclasses implement :meth:`segment`."""

    tasks: ClassVar[tuple[str, ...]] = ("region",)

    @abstractmethod
    def segment(self, volume: Image, spec: ImageSpec) -> NDArray[np.bool_]:
        """Segment one image.

        Args:
            volume: Read-only, in its own units (Hounsfield units for CT), with the axes named in ``spec``.
            spec: Range, spacing in millimetres, and the points clicked by a person (``marks``).

        Returns:
            bool of the image's spatial shape.
        """

    def answer(self, image: Image, spec: ImageSpec) -> RawAnswer:
        """Return the region of one image."""
        return self.segment(image, spec)
