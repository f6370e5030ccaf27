"""Scores of detected things: class, position and colour against the drawn ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtest.core.scenes import SeenEntity, Triple
from medtest.phantoms.scenes import Placed
from medtest.readers.pictures.bundled.peaks import overlap
from medtest.readers.pictures.spatial import triples_of

MATCHED = 0.5
"""Minimum intersection over union with the drawn box."""


@dataclass(kw_only=True)
class DetectionTally:
    """Counts over pictures.

    Attributes:
        drawn: Things drawn.
        detected: Things found.
        matched: Things drawn and found: of one class, boxes overlapping by :data:`MATCHED`.
        coloured: Matched things with the right colour.
        triples_drawn: Relations that hold between the drawn boxes.
        triples_found: Reported relations.
        triples_matched: Reported relations that hold between the drawn boxes.
    """

    drawn: int = 0
    detected: int = 0
    matched: int = 0
    coloured: int = 0
    triples_drawn: int = 0
    triples_found: int = 0
    triples_matched: int = 0

    def add(
        self, placed: Sequence[Placed], entities: Sequence[SeenEntity], triples: Sequence[Triple] | None = None
    ) -> None:
        """Count one picture.

        Args:
            placed: The drawn things.
            entities: The detected things.
            triples: Reported relations between them, by index; None to count none.
        """
        pairs = matches(placed, entities)
        self.drawn += len(placed)
        self.detected += len(entities)
        self.matched += len(pairs)
        self.coloured += sum(placed[its].colour in entities[own].attributes for own, its in pairs.items())
        if triples is not None:
            drawn = triples_of([SeenEntity(name=entity.name, box=entity.box) for entity in placed])
            hold = {(triple.subject, triple.predicate, triple.object) for triple in drawn}
            self.triples_drawn += len(hold)
            self.triples_found += len(triples)
            ends = ((pairs.get(triple.subject), triple.predicate, pairs.get(triple.object)) for triple in triples)
            self.triples_matched += sum(triple in hold for triple in ends)

    @property
    def recall(self) -> float:
        """Share of drawn things that were found."""
        return self.matched / max(self.drawn, 1)

    @property
    def precision(self) -> float:
        """Share of found things that were drawn."""
        return self.matched / max(self.detected, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        return 2.0 * self.matched / max(self.drawn + self.detected, 1)

    @property
    def triples_f1(self) -> float:
        """Harmonic mean of precision and recall of the reported relations."""
        return 2.0 * self.triples_matched / max(self.triples_drawn + self.triples_found, 1)

    @property
    def colours(self) -> float:
        """Share of matched things with the right colour."""
        return self.coloured / max(self.matched, 1)


def matches(placed: Sequence[Placed], entities: Sequence[SeenEntity]) -> dict[int, int]:
    """Return index seen → index drawn; each is matched once, with the box of largest overlap."""
    free = set(range(len(placed)))
    pairs: dict[int, int] = {}
    for own in sorted(range(len(entities)), key=lambda index: -entities[index].score):
        box = entities[own].box
        if box is None:
            continue
        near = [(overlap(box, placed[its].box), its) for its in free if placed[its].name == entities[own].name]
        best, its = max(near, default=(0.0, -1))
        if best >= MATCHED:
            pairs[own] = its
            free.discard(its)
    return pairs
