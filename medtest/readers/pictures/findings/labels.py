"""A classification system as a reader: the findings whose labels are true.

A class is a finding of the vocabulary of orders (:mod:`medtest.language.orders`) under any of its names, in any case,
with blanks or underscores, and may name an attribute of it: the patient's side (``left effusion``), a colour, a size or
a Paris type (``red polyp``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from medtest.core.cases import Classes, Image
from medtest.core.errors import MedtestError, Mistake, nearest_name
from medtest.core.scenes import SIDES, Scene, SeenEntity, Tells, alphabetical
from medtest.language.orders import vocabulary
from medtest.language.orders.contents import PARIS, SIZES
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.named_system import SystemReader, SystemReaderSettings
from medtest.systems.base import System
from medtest.systems.classification.answers import check_label
from medtest.systems.classification.heads import FindingsSystem

LEFT, RIGHT, BILATERAL = SIDES


class LabelReaderSettings(SystemReaderSettings):
    """Settings of :class:`LabelReader`.

    Attributes:
        threshold: Probability above which a finding is in the picture; of exclusive classes the most probable one is.
        names: Findings of classes with other names, such as ``{Effusion_L: left effusion}``; "" leaves a class out.
    """

    system: str = "chexnet_sides"
    threshold: float = Field(default=0.5, ge=0, lt=1)
    names: dict[str, str] = Field(default={}, max_length=1000)


class LabelReader(SystemReader):
    """Detects the findings that a classification system knows: one entity each, with the attributes in its classes.

    It does not count. Findings on both sides are ``bilateral``.
    """

    Settings = LabelReaderSettings
    settings: LabelReaderSettings
    system_task = "label"
    _classes: Classes
    _meanings: Mapping[str, tuple[str, str]]

    def check(self) -> list[Mistake]:
        """Return the mistakes in the name of the system or its settings; it must name findings."""
        system, mistakes = self.find_system(), super().check()
        if not isinstance(system, System) or mistakes:
            return mistakes
        classes = system.classes
        if classes is None:
            problem = f"{self.settings.system}, which does not name its classes"
            return [Mistake(where=self.name, key="system", found=problem, allowed="a classifier with named classes")]
        mistakes = self._wrong_names(classes.names)
        if mistakes:
            return mistakes
        if not meanings(classes.names, self.settings.names):
            problem = f"{', '.join(classes.names[:8])}: none is a finding of orders"
            fix = "names={CLASS: FINDING, …} says what they are"
            return [Mistake(where=self.name, key="names", found=problem, fix=fix)]
        return []

    def _wrong_names(self, classes: Sequence[str]) -> list[Mistake]:
        """Return the names of classes that the system lacks, and those that are given to no finding."""
        findings = vocabulary().findings
        mistakes = []
        for name, finding in self.settings.names.items():
            if name not in classes:
                allowed, nearest = f"classes of {self.settings.system}", nearest_name(name, classes)
                mistakes.append(Mistake(where=self.name, key="names", found=name, allowed=allowed, nearest=nearest))
            elif finding and finding_of_class(finding) is None:
                allowed = f'{", ".join(findings)}, with or without a side or another attribute, or "" for none'
                nearest = nearest_name(finding, findings)
                key = f"names.{name}"
                mistakes.append(Mistake(where=self.name, key=key, found=finding, allowed=allowed, nearest=nearest))
        return mistakes

    def card_beside(self) -> Path | None:
        """Return the path of the card of a system that ships, beside its weights; None for other systems.

        Each threshold has a card of its own: ``…-0.9.card.json``, without a number for the default threshold.
        """
        system, threshold = self.find_system(), self.settings.threshold
        if not isinstance(system, FindingsSystem):
            return None
        default = LabelReaderSettings.model_fields["threshold"].default
        weights = system.compact_weights
        return weights.with_name(f"{weights.stem}{'' if threshold == default else f'-{threshold:g}'}{SUFFIX}")

    def open(self, *, device: str, threads: int) -> None:
        """Load the system.

        Raises:
            MedtestError: It cannot be loaded, or does not name its classes.
        """
        self._system = self.create_system()
        self._system.open(device=device, threads=threads)
        if self._system.classes is None:
            raise MedtestError(f"{self.name}: {self.settings.system} does not name its classes")
        self._classes = self._system.classes
        self._meanings = meanings(self._classes.names, self.settings.names)

    @property
    def tells(self) -> Tells:
        """Findings and sides that the opened system can tell."""
        named = {attribute for _, attribute in self._meanings.values()} - {""}
        return Tells(
            classes=frozenset(name for name, _ in self._meanings.values()),
            predicates=frozenset(),
            attributes=frozenset(named | set(SIDES if named & set(SIDES) else ())),
            counts=False,
        )

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the findings whose labels are true.

        Raises:
            MedtestError: The reader is not open.
            BadOutput: The system gives no valid answer for a picture.
        """
        return [self._scene(answer) for answer in self._predicted(images)]

    def _scene(self, answer: Any) -> Scene:
        assert self._system is not None  # noqa: S101 - look checks it
        output = check_label(answer, expected=self._classes, own=self._classes, form=self._system.answer_form)
        scores = dict.fromkeys(output.labels, 1.0)
        if output.probabilities is not None:
            shares = dict(zip(self._classes.names, output.probabilities.tolist(), strict=True))
            true = [name for name, share in shares.items() if share > self.settings.threshold]
            scores = {name: shares[name] for name in (true if self._classes.multi else output.labels)}
        scores_of: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for label, score in scores.items():
            if label in self._meanings:
                name, attribute = self._meanings[label]
                scores_of[name][attribute] = score
        plain = {name for name, attribute in self._meanings.values() if not attribute}
        entities = []
        for name, its in sorted(scores_of.items()):
            if name in plain and "" not in its:
                continue  # the finding's own class decides whether it is there
            others = [attribute for attribute in its if attribute and attribute not in SIDES]
            attributes = alphabetical((*others, *attributes_of_sides(its)))
            entities.append(SeenEntity(name=name, score=its.get("", max(its.values())), attributes=attributes))
        return Scene(entities=tuple(entities), tells=self.tells)


def attributes_of_sides(sides: Collection[str]) -> tuple[str, ...]:
    """Return the attribute for the patient's sides on which a finding is; none without a side."""
    sided = tuple(side for side in (LEFT, RIGHT) if side in sides)
    return (BILATERAL,) if len(sided) == 2 or BILATERAL in sides else sided


def meanings(classes: Sequence[str], names: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return finding and attribute by class, without classes that are no findings.

    Args:
        classes: Names of classes.
        names: Findings of classes with other names.
    """
    by_class = {name: finding_of_class(names.get(name, name)) for name in classes}
    return {name: meaning for name, meaning in by_class.items() if meaning is not None}


def finding_of_class(label: str) -> tuple[str, str] | None:
    """Return the finding that a class names, and its attribute or ""; None for no finding of orders.

    An attribute is a side, a colour, a size or a Paris type before the finding, or a side after it.
    """
    phrase = _folded(label)
    if (name := _names().get(phrase)) is not None:
        return name, ""
    for attribute in (*SIDES, *SIZES, *PARIS, *vocabulary().lists["colours"]):
        folded = _folded(attribute)
        rest = phrase.removeprefix(f"{folded} ")
        if rest == phrase and attribute in SIDES:
            rest = phrase.removesuffix(f" {folded}")
        if rest != phrase and (name := _names().get(rest)) is not None:
            return name, attribute
    return None


def _folded(label: str) -> str:
    return " ".join(label.replace("_", " ").casefold().split())


@cache
def _names() -> dict[str, str]:
    """Return the finding of each of its names, folded."""
    findings = vocabulary().findings
    return {_folded(noun): name for name, words in findings.items() for noun in (name, *words.nouns)}
