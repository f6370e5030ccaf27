"""What a system under test is.

A system is made twice: once by the parent process, which only asks for its name, fingerprint and mistakes and must
not load anything heavy, and once in each worker, which calls :meth:`System.open` and then :meth:`System.predict`.
It therefore pickles (its settings do), and torch, onnxruntime and their kin are imported in :meth:`System.open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Address, Classes, Image, ImageSpec, Json
from medtest.core.errors import Mistake
from medtest.core.plugins import Part, PartSettings
from medtest.core.probes import Need
from medtest.core.tasks.base import Task, task_of


@dataclass(frozen=True, slots=True)
class Missing:
    """The system has no answer for this case, which is no fault of it: the case becomes SKIP with this reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAnswer:
    """What a classifier answers that also segments.

    Attributes:
        scores: As the answer of a classifier without a mask, see :mod:`medtest.tasks.classify.border`.
        mask: As the answer of a segmenter, see :mod:`medtest.core.tasks.border`; None where there is none.
    """

    scores: Any
    mask: Any = None


RawAnswer: TypeAlias = "NDArray[Any] | LabelAnswer | Missing | int | str | list[str] | list[int] | dict[str, float]"
"""For segmentation: h×w, bool (a mask) or float (probability in [0, 1]) or uint8 (probability × 255), of any size.
For series see :mod:`medtest.core.tasks.series_border`, for labels :mod:`medtest.tasks.classify.border`."""

ANSWER_FORMS: tuple[str, ...] = ("probabilities", "logits", "labels")
"""What a classifier's answers may be."""


LABEL_ONLY: dict[str, Any] = {"label_only": True}
"""``json_schema_extra`` of a setting that only counts where labels are asked for; no other run's digest covers it."""


class SystemSettings(PartSettings):
    """Settings every system has.

    Attributes:
        trained_on: Data sets it has seen in training; tables mark them.
    """

    trained_on: list[str] = Field(default=[])

    def own(self) -> dict[str, Any]:
        """Return the settings that not every system has."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name not in SystemSettings.model_fields
        }


class System(Part, ABC):
    """A system under test.

    Args:
        name: Its id in the suite or on the command line.
        settings: An instance of the class's ``Settings``.

    Attributes:
        tasks: Names of the tasks that it can do, its usual one first; several where the answer's form is the user's to
            choose (a function, a folder).
        kind: Name of the task that it is asked for, one of ``tasks`` as the suite's seeds need it.
        squared: Whether the suite has prepared images to a square, which is then what every system sees.
        needs_device: Whether ``device=`` matters to it.
        in_process: Whether it is an object of the calling program, which no other process can have.
        draws_calls: Whether it draws calls from a stream and answers in any order
            (:class:`medtest.systems.answering.asking.AskingSystem`); others are handed batches.
        file_format: What its file is, where one network comes in several formats; "" elsewhere. It ends the system's
            name.
        probed: What a probe of it can give at most: scores of whatever really runs, nothing of finished answers.
        shown: What it is called in records where the user named it, or brought it; "" for its own name.
        classes: Of kind ``label``: what its scores stand for, in their order; None where they are the seeds' classes in
            the seeds' order.
        answer_form: Of kind ``label``: one of :data:`ANSWER_FORMS`.
    """

    classes: Classes | None = None
    answer_form: str = "probabilities"
    Settings: ClassVar[type[SystemSettings]] = SystemSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask",)
    needs_device: ClassVar[bool] = False
    in_process: ClassVar[bool] = False
    draws_calls: ClassVar[bool] = False
    file_format: ClassVar[str] = ""
    probed: ClassVar[Need] = Need.SCORES

    @classmethod
    def tasks_of(cls, settings: Any) -> tuple[str, ...]:
        """Return the tasks that it can do under these settings."""
        return cls.tasks

    def __init__(self, name: str, settings: Any) -> None:
        self.name = name
        self.settings = settings
        self.kind: str = type(self).tasks[0]
        self.squared = False
        self.shown = ""

    @property
    def task(self) -> Task:
        """What it is asked for, as an object."""
        return task_of(self.kind)

    @property
    def record_name(self) -> str:
        """Name in records, folders, tables and MLflow, e.g. ``pranet-compact``."""
        return self.shown or self.own_name()

    def own_name(self) -> str:
        """Return what it is called where nobody names it."""
        return self.name

    def notice(self) -> str:
        """Return one line the user reads before the run ("the compact network runs …"), or an empty string."""
        return ""

    def resolved(self) -> dict[str, Json]:
        """Return settings whose value follows from the suite, as digests cover them."""
        return {}

    def check(self) -> Sequence[Mistake]:
        """Return the user's mistakes that can be seen without loading (a missing file, a wrong suffix)."""
        return ()

    @abstractmethod
    def fingerprint(self) -> dict[str, Json]:
        """Return what determines its answers beyond its settings: SHA-256 of weights, of a user's file, of a folder."""

    @abstractmethod
    def open(self, *, device: str, threads: int) -> None:
        """Load what is needed. Called once in each worker, before any :meth:`predict`.

        Args:
            device: ``"cpu"`` or ``"cuda:N"`` (``auto`` is resolved before).
            threads: Intra-op threads this process may use.
        """

    @property
    def inner(self) -> System:
        """What really answers: itself, or what it stands for."""
        return self

    def offers(self) -> Need:
        """Return what a probe of it gives to a relation that needs a system; asked before anything is loaded.

        Nothing of systems that draw calls (models over an API), of answers made elsewhere, of labels without scores,
        and where it is asked for anything but labels or masks of pictures.
        """
        task = self.task
        pictures = (task.labels or task.masks) and not task.series and not task.stream
        has_scores = not task.labels or self.answer_form != "labels"
        return type(self).probed if pictures and has_scores and not self.draws_calls else Need.NOTHING

    @abstractmethod
    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Answer one batch.

        Args:
            images: uint8 RGB H×W×3 each; one size in ``prepare.size: 512``, different sizes under ``native``.
            addresses: The cases' addresses, for systems that answer from files. A network must not look at them.

        Returns:
            One answer per image (a map, or what :mod:`medtest.tasks.classify.border` takes where labels are asked for).
            An exception makes every case of the batch an ERROR, retried one by one once.
        """

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Answer one batch of a series; by default as :meth:`predict`, which does not know what the numbers mean.

        Args:
            images: Of any dtype, range and dimension; read-only.
            specs: What each image's numbers and axes mean.
            addresses: As in :meth:`predict`.
        """
        return self.predict(images, addresses)

    def close(self) -> None:
        """Free what :meth:`open` took."""
        return
