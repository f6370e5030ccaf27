"""What the classes of a user's classifier are called, and what they stand for among the seeds' classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from medtest.core.cases import Classes
from medtest.core.errors import BadOutput, MedtestError, Mistake, nearest_name
from medtest.systems.base import RawAnswer, System, SystemSettings

if TYPE_CHECKING:
    from torch import Tensor

_NUMBERED = re.compile(r"(label|class)[ _-]?\d+", re.IGNORECASE)
"""Names that libraries give to classes that nobody named."""


class LabelSettings(SystemSettings):
    """Settings of a system that gives scores of classes.

    Attributes:
        classes: Names of its classes in the order of its scores; null for those in its own files, and where there are
            none, for the seeds' classes in the seeds' order.
        labels: For names of its classes, the seeds' class that each stands for; case does not count in either. Several
            may stand for one: their probabilities are summed (the largest is taken where several classes may be true).
        multi: Whether several classes may be true at once; null for what its files say, else for one.
    """

    classes: list[str] | None = Field(default=None, min_length=1)
    labels: dict[str, str] = Field(default={})
    multi: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Naming:
    """The classes of a system's scores.

    Attributes:
        own: Its own names, one for each score.
        classes: What it answers with: the seeds' names, each once.
    """

    own: tuple[str, ...]
    targets: tuple[str, ...]
    classes: Classes

    @property
    def merges(self) -> bool:
        """Whether several of its classes stand for one of the seeds'."""
        return len(self.classes.names) < len(self.own)

    @property
    def groups(self) -> list[list[int]]:
        """Which of its own classes stand for each of :attr:`classes`, by place."""
        return [[i for i, target in enumerate(self.targets) if target == name] for name in self.classes.names]

    def merged(self, scores: NDArray[Any], gives: Literal["logits", "probabilities"]) -> NDArray[np.float64]:
        """Return a probability for each of :attr:`classes`, float64.

        Args:
            scores: One for each of :attr:`own`.
            gives: What they are; of logits the softmax is taken, or the logistic function where several may be true.
        """
        given = np.asarray(scores, np.float64)
        if gives == "logits":
            powers = np.exp(-np.abs(given)) if self.classes.multi else np.exp(given - given.max())
            given = np.where(given >= 0, 1, powers) / (1 + powers) if self.classes.multi else powers / powers.sum()
        return np.array([given[group].max() if self.classes.multi else given[group].sum() for group in self.groups])


class NamedSystem(System):
    """A system whose classes its own files or its user name."""

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._groups: tuple[list[list[int]], bool] | None = None

    def file_names(self) -> tuple[tuple[str, ...] | None, bool]:
        """Return the names of classes in its own files, in the order of its scores, and whether several may be true.

        None stands for no names.
        """
        return None, False

    @property
    def naming(self) -> Naming | None:
        """Its classes, and what they stand for."""
        names, multi = self.file_names()
        return naming(self.settings, names, multi=multi)

    @property
    def classes(self) -> Classes | None:  # type: ignore[override]
        """What its answers stand for where labels are asked for; None for the seeds' classes in their order."""
        found = self.naming if self.task.labels else None
        return None if found is None else found.classes

    @property
    def gives(self) -> Literal["logits", "probabilities"]:
        """What its scores are."""
        return "logits"

    @property
    def answer_form(self) -> str:  # type: ignore[override]
        """``probabilities`` where classes are merged, else what its scores are."""
        found = self.naming
        return "probabilities" if found is not None and found.merges else self.gives

    def check_count(self, count: int) -> None:
        """Refuse a network of another number of classes than names.

        Raises:
            MedtestError: It is one.
        """
        found = self.naming
        if found is not None and len(found.own) != count:
            named = f"{len(found.own)} are named: {', '.join(found.own)}"
            raise MedtestError(f"{self.name}: this network has {count} classes, and {named}")

    def class_logits(self, scores: Tensor, *, multi: bool) -> Tensor:
        """Return logits of :attr:`classes`, B×C: of what :meth:`label_answers` makes of the same scores.

        Args:
            scores: One for each of its own classes.
            multi: Whether several of the seeds' classes may be true, where nobody names its own.

        Raises:
            BadOutput: They have another number of classes.
        """
        from medtest.systems.pytorch.pixels import logits_of, merged
        from medtest.systems.pytorch.torch_system import exactly

        if self._groups is None:
            found = self.naming
            self._groups = ([], multi) if found is None else (found.groups, found.classes.multi)
        groups, several = self._groups
        if scores.ndim != 2 or (groups and scores.shape[1] != sum(map(len, groups))):
            raise BadOutput(f"gave shape {tuple(scores.shape)}; images × classes are expected")
        logits = exactly(scores) if self.gives == "logits" else logits_of(exactly(scores), multi=several)
        return merged(logits, groups, multi=several) if groups else logits

    def label_answers(self, scores: Tensor, images: int) -> list[RawAnswer]:
        """Return one answer per image of a network's scores, in :attr:`answer_form`.

        Raises:
            BadOutput: They have another number of images or classes.
        """
        found = self.naming
        classes = None if found is None else len(found.own)
        if scores.ndim != 2 or scores.shape[0] != images or (classes is not None and scores.shape[1] != classes):
            wanted = f"{images} × {classes or 'classes'}"
            raise BadOutput(f"gave shape {tuple(scores.shape)}; {wanted} is expected")
        rows = list(np.asarray(scores.detach().float().cpu().numpy(), np.float32))
        return [found.merged(row, self.gives) for row in rows] if found is not None and found.merges else list(rows)


def naming(settings: LabelSettings, files: Sequence[str] | None, *, multi: bool = False) -> Naming | None:
    """Return the classes of a system, or None where nobody names them.

    Args:
        settings: The user's.
        files: Names in the system's own files, None where there are none.
        multi: What they say of several classes being true.
    """
    own = settings.classes or files
    if not own:
        return None
    meant = {key.casefold(): target for key, target in settings.labels.items()}
    given = [settings.labels.get(name, meant.get(name.casefold(), name)) for name in own]
    spelt: dict[str, str] = {}
    targets = tuple(spelt.setdefault(target.casefold(), target) for target in given)
    several = multi if settings.multi is None else settings.multi
    return Naming(own=tuple(own), targets=targets, classes=Classes(names=tuple(dict.fromkeys(targets)), multi=several))


def naming_mistakes(settings: LabelSettings, files: Sequence[str] | None, *, where: str) -> list[Mistake]:
    """Return what is wrong with the settings of names."""
    own = settings.classes or files
    if settings.classes and len(set(settings.classes)) < len(settings.classes):
        found = next(name for name in settings.classes if settings.classes.count(name) > 1)
        return [Mistake(where=where, key="classes", found=f"{found} twice", allowed="every class once")]
    if settings.classes and files and len(settings.classes) != len(files):
        found = f"{len(settings.classes)} names for a network of {len(files)} classes"
        return [Mistake(where=where, key="classes", found=found, allowed=f"one for each of {_listed(files)}")]
    if settings.labels and not own:
        fix = f"add systems.{where}.classes=[…], in the order of its scores"
        return [Mistake(where=where, key="labels", found="a network whose classes nobody has named", fix=fix)]
    return [
        Mistake(
            where=where,
            key="labels",
            found=f"{name}, which is none of its classes",
            allowed=_listed(own or ()),
            nearest=nearest_name(name, own or ()),
        )
        for name in settings.labels
        if name.casefold() not in {one.casefold() for one in own or ()}
    ]


def real_names(given: Mapping[Any, Any] | Sequence[Any] | None, count: int | None = None) -> tuple[str, ...] | None:
    """Return the names of classes that a library's file holds, or None where it only numbers them.

    Args:
        given: A list, or an object from the index as a text or a number.
        count: How many there must be, where that is known.
    """
    if isinstance(given, Mapping):
        try:
            names = [str(name) for _, name in sorted((int(index), name) for index, name in given.items())]
        except (TypeError, ValueError):
            return None
    else:
        names = [str(name) for name in given or ()]
    if not names or len(set(names)) < len(names) or (count is not None and len(names) != count):
        return None
    return None if all(_NUMBERED.fullmatch(name) for name in names) else tuple(names)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:30]) + (f", … ({len(names)} in all)" if len(names) > 30 else "")
