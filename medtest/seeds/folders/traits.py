"""Notices on oddities of files that are still used, one sentence for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

Trait: TypeAlias = Literal["large", "specks", "near", "turned"]

LARGE = 0.6
"""Lesions rarely cover more of an image; the mask may be inverted."""

_MOST_NAMED = 3

_WORDS: dict[Trait, str] = {
    "large": (
        "{count} more than 60 % of the image as lesion ({names}): are lesion and background exchanged? "
        "{key}=[0] takes what is black."
    ),
    "specks": "{count} single pixels of low values and nothing else ({names}): taken for noise on an empty mask.",
    "near": "{count} other levels within 32 of black or white ({names}): noise, read as black or white.",
    "turned": (
        "{count} an orientation in the file of image or mask alone ({names}): each is turned as its own file says; "
        "see that the two fit."
    ),
}
_VERBS: dict[Trait, tuple[str, str]] = {
    "large": ("1 mask marks", "{} masks mark"),
    "specks": ("1 mask holds", "{} masks hold"),
    "near": ("1 mask holds", "{} masks hold"),
    "turned": ("1 pair has", "{} pairs have"),
}


class FolderTraits:
    """Collector of file traits; memory does not grow with the folder."""

    def __init__(self) -> None:
        self._counts: dict[Trait, int] = {}
        self._names: dict[Trait, list[str]] = {}

    def add(self, file: str, traits: Iterable[Trait]) -> None:
        """Record the traits of one file."""
        for trait in traits:
            self._counts[trait] = self._counts.get(trait, 0) + 1
            names = self._names.setdefault(trait, [])
            if len(names) < _MOST_NAMED:
                names.append(file)

    def notices(self, label_key: str = "label_values") -> list[str]:
        """Return one sentence for each recorded trait.

        Args:
            label_key: Full key of the setting that lists the lesion values of masks.
        """
        sentences = []
        for trait, count in self._counts.items():
            singular, several = _VERBS[trait]
            names = self._names[trait]
            listed = ", ".join(names) + (" and others" if count > len(names) else "")
            subject = singular if count == 1 else several.format(f"{count:,}")
            sentences.append(_WORDS[trait].format(count=subject, names=listed, key=label_key))
        return sentences
