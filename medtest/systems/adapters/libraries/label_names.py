"""Class names of a user's classifier, and their mapping to the seeds' classes."""

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
from medtest.systems.classification.answers import probabilities_of
from medtest.systems.pytorch.pixels import logits_of, merged
from medtest.systems.pytorch.torch_system import exactly

if TYPE_CHECKING:
    from torch import Tensor

_NUMBERED = re.compile(r"(label|class)[ _-]?\d+", re.IGNORECASE)
"""Names that libraries give to unnamed classes."""


class LabelSettings(SystemSettings):
    """Settings of a system that gives scores of classes.

    Attributes:
        classes: Names of its classes in the order of its scores; null for those in its own files, or else for the
            seeds' classes in the seeds' order.
        labels: Mapping of its class names to the seeds' classes, case-insensitive. Several may map to one: their
            probabilities are summed (the largest is used if several classes may be true).
        multi: Whether several classes may be true at once; null for the value in its files, false by default.
    """

    classes: list[str] | None = Field(default=None, min_length=1)
    labels: dict[str, str] = Field(default={})
    multi: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Classes of a system's scores.

    Attributes:
        own: Its own names, one for each score.
        targets: Name of the seeds' class for each of its classes.
        classes: Classes of its answers: the seeds' names, each once.
    """

    own: tuple[str, ...]
    targets: tuple[str, ...]
    classes: Classes

    @property
    def merges(self) -> bool:
        """Whether several of its classes map to one of the seeds'."""
        return len(self.classes.names) < len(self.own)

    @property
    def groups(self) -> list[list[int]]:
        """Positions of the classes in :attr:`own` that map to each of :attr:`classes`."""
        return [[i for i, target in enumerate(self.targets) if target == name] for name in self.classes.names]

    def merged(self, scores: NDArray[Any], gives: Literal["logits", "probabilities"]) -> NDArray[np.float64]:
        """Return a probability for each of :attr:`classes`, float64.

        Args:
            scores: One for each of :attr:`own`.
            gives: Form of the scores; logits are converted by softmax, or by the logistic function if several may be
                true.
        """
        values = np.asarray(scores, np.float64)
        if gives == "logits":
            values = probabilities_of(values, multi=self.classes.multi)
        return np.array([values[group].max() if self.classes.multi else values[group].sum() for group in self.groups])


class NamedSystem(System):
    """System whose classes are named in its own files or by the user."""

    settings: Any
    _groups: tuple[list[list[int]], bool] | None = None

    def file_names(self) -> tuple[tuple[str, ...] | None, bool]:
        """Return the class names in its own files, in the order of its scores, and whether several may be true.

        The names are None if there are none.
        """
        return None, False

    @property
    def naming(self) -> Naming | None:
        """Its classes and their mapping."""
        names, multi = self.file_names()
        return naming(self.settings, names, multi=multi)

    @property
    def classes(self) -> Classes | None:  # type: ignore[override]
        """Classes of its answers, for labels; None for the seeds' classes in their order."""
        named = self.naming if self.task.labels else None
        return None if named is None else named.classes

    @property
    def gives(self) -> Literal["logits", "probabilities"]:
        """Form of its scores."""
        return "logits"

    @property
    def answer_form(self) -> str:  # type: ignore[override]
        """``probabilities`` if classes are merged, otherwise the form of its scores."""
        named = self.naming
        return "probabilities" if named is not None and named.merges else self.gives

    def check_count(self, count: int) -> None:
        """Raise an error if a network's number of classes differs from the number of names.

        Raises:
            MedtestError: The numbers differ.
        """
        own_naming = self.naming
        if own_naming is not None and len(own_naming.own) != count:
            named = f"{len(own_naming.own)} are named: {', '.join(own_naming.own)}"
            raise MedtestError(f"{self.name}: this network has {count} classes, and {named}")

    def class_logits(self, scores: Tensor, *, multi: bool) -> Tensor:
        """Return logits of :attr:`classes`, B×C, that match :meth:`label_answers` of the same scores.

        Args:
            scores: One per class in :attr:`own`.
            multi: Whether several of the seeds' classes may be true, if its own are not named.

        Raises:
            BadOutput: They have another number of classes.
        """
        if self._groups is None:
            named = self.naming
            self._groups = ([], multi) if named is None else (named.groups, named.classes.multi)
        groups, several = self._groups
        if scores.ndim != 2 or (groups and scores.shape[1] != sum(map(len, groups))):
            raise BadOutput(f"gave shape {tuple(scores.shape)}; images × classes are expected")
        logits = exactly(scores) if self.gives == "logits" else logits_of(exactly(scores), multi=several)
        return merged(logits, groups, multi=several) if groups else logits

    def label_answers(self, scores: Tensor, images: int) -> list[RawAnswer]:
        """Return one answer per image from a network's scores, in :attr:`answer_form`.

        Raises:
            BadOutput: They have another number of images or classes.
        """
        named = self.naming
        classes = None if named is None else len(named.own)
        if scores.ndim != 2 or scores.shape[0] != images or (classes is not None and scores.shape[1] != classes):
            expected = f"{images} × {classes or 'classes'}"
            raise BadOutput(f"gave shape {tuple(scores.shape)}; {expected} is expected")
        rows = list(np.asarray(scores.detach().float().cpu().numpy(), np.float32))
        return [named.merged(row, self.gives) for row in rows] if named is not None and named.merges else list(rows)


def naming(settings: LabelSettings, files: Sequence[str] | None, *, multi: bool = False) -> Naming | None:
    """Return the classes of a system, or None if they are not named.

    Args:
        settings: The user's settings.
        files: Names in the system's own files, or None.
        multi: Whether the files state that several classes may be true.
    """
    own = settings.classes or files
    if not own:
        return None
    meant = {key.casefold(): target for key, target in settings.labels.items()}
    mapped = [settings.labels.get(name, meant.get(name.casefold(), name)) for name in own]
    spelt: dict[str, str] = {}
    targets = tuple(spelt.setdefault(target.casefold(), target) for target in mapped)
    several = multi if settings.multi is None else settings.multi
    return Naming(own=tuple(own), targets=targets, classes=Classes(names=tuple(dict.fromkeys(targets)), multi=several))


def naming_mistakes(settings: LabelSettings, files: Sequence[str] | None, *, where: str) -> list[Mistake]:
    """Return the problems of the naming settings."""
    own = settings.classes or files
    if settings.classes and len(set(settings.classes)) < len(settings.classes):
        duplicate = next(name for name in settings.classes if settings.classes.count(name) > 1)
        return [Mistake(where=where, key="classes", found=f"{duplicate} twice", allowed="every class once")]
    if settings.classes and files and len(settings.classes) != len(files):
        duplicate = f"{len(settings.classes)} names for a network of {len(files)} classes"
        return [Mistake(where=where, key="classes", found=duplicate, allowed=f"one for each of {_listed(files)}")]
    if settings.labels and not own:
        fix = f"add systems.{where}.classes=[…], in the order of its scores"
        return [Mistake(where=where, key="labels", found="a network without class names", fix=fix)]
    return [
        Mistake(
            where=where,
            key="labels",
            found=f"{name}, which is none of its classes",
            allowed=_listed(own or ()),
            nearest=nearest_name(name, own or ()),
        )
        for name in settings.labels
        if name.casefold() not in {known_name.casefold() for known_name in own or ()}
    ]


def real_names(named: Mapping[Any, Any] | Sequence[Any] | None, count: int | None = None) -> tuple[str, ...] | None:
    """Return the class names in a library's file, or None if it only numbers them.

    Args:
        named: A list, or a mapping from the index as a string or a number.
        count: Expected number, if known.
    """
    if isinstance(named, Mapping):
        try:
            names = [str(name) for _, name in sorted((int(index), name) for index, name in named.items())]
        except (TypeError, ValueError):
            return None
    else:
        names = [str(name) for name in named or ()]
    if not names or len(set(names)) < len(names) or (count is not None and len(names) != count):
        return None
    return None if all(_NUMBERED.fullmatch(name) for name in names) else tuple(names)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:30]) + (f", … ({len(names)} in all)" if len(names) > 30 else "")
