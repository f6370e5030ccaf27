"""The hand-labelled answers, a quarter of them held out by their hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from medtest.language.questions.values import Kind

FOLDER = Path(__file__).parent / "labelled"


@dataclass(frozen=True)
class Labelled:
    """A labelled answer: the parser's input and its expected output."""

    kind: Kind
    item: int
    expected: str
    text: str
    first_set: bool = True

    @property
    def held_out(self) -> bool:
        """Return whether the parser was written without this row; the first figures come from the other rows."""
        return self.first_set and hashlib.sha256(f"{self.item} {self.text}".encode()).digest()[0] % 4 == 0


_KINDS = {
    0: Kind.PROCEDURE,
    5: Kind.COLOUR,
    6: Kind.COLOUR,
    16: Kind.SIZE,
    17: Kind.POLYP_TYPE,
    **dict.fromkeys((1, 2, 3, 4), Kind.YES_NO),
    **dict.fromkeys((7, 8, 9), Kind.COUNT),
    **dict.fromkeys((10, 11, 15), Kind.PLACE),
    **dict.fromkeys((12, 13, 14), Kind.FINDINGS),
}
"""Type of answer of each official id, written down apart from the package's own table."""


def labelled() -> list[Labelled]:
    """Return every labelled answer."""
    rows = []
    for file in sorted(FOLDER.glob("*.csv")):
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:
            item, expected, text = line.split("|", 2)
            kind = _KINDS[int(item)]
            rows.append(
                Labelled(
                    kind,
                    int(item),
                    expected,
                    text.replace("\\n", "\n"),
                    file.stem in set(Kind),
                )
            )
    return rows
