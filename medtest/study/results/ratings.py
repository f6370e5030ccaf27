"""Answers as the report reads them: one row for each place that was answered, and counts by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medtest.study.model import Item, SavedAnswer
from medtest.study.questions import AGREE, LEVELS, Role
from medtest.study.store import StudyStore


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One annotator's last word on one showing of an item.

    Attributes:
        annotator: His number.
        position: Its place in his list.
        item: What was shown.
        showing: 1, or 2 where the item came back.
        answer: The newest answer.
        first: The first one, whose time counts: later ones are corrections.
        changes: How often it was changed.
    """

    annotator: int
    position: int
    item: Item
    showing: int
    answer: SavedAnswer
    first: SavedAnswer
    changes: int

    def level(self, question: str) -> int | None:
        """Return the answer to a question, 1–5."""
        found: int | None = getattr(self.answer, question)
        return found


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """All of a study.

    Attributes:
        main: Answers that count, catch items and second showings among them.
        training: Answers of the training round.
        planned: Places of everyone's list.
        left_out: Annotators whose answers are not read.
        items: Items to judge, relation by relation in the order of the suite.
    """

    main: tuple[Rating, ...]
    training: tuple[Rating, ...]
    planned: Mapping[int, int]
    left_out: tuple[int, ...]
    items: tuple[Item, ...]

    @property
    def judged(self) -> list[Rating]:
        """First showings of the items themselves: what means and agreement are made of."""
        return [r for r in self.main if r.showing == 1 and r.item.role is Role.ITEM]

    @property
    def relations(self) -> list[str]:
        """Relations in the order of the suite."""
        return list(dict.fromkeys(item.relation for item in self.items))

    @property
    def annotators(self) -> list[int]:
        """Whose answers are read."""
        return sorted(self.planned)

    def by_item(self) -> dict[int, list[Rating]]:
        """Return the first showings by item, in the order of the items."""
        found: dict[int, list[Rating]] = {item.id: [] for item in self.items}
        for rating in self.judged:
            found[rating.item.id].append(rating)
        return {number: ratings for number, ratings in found.items() if ratings}


def read_ratings(store: StudyStore, leave_out: Sequence[int] = ()) -> Ratings:
    """Read a study's answers.

    Args:
        store: The open study.
        leave_out: Annotators whose answers are not read.
    """
    items = {item.id: item for item in store.items()}
    places = {(p.annotator, p.phase, p.position): p for p in store.places() if p.annotator not in leave_out}
    history: dict[tuple[int, str, int], list[SavedAnswer]] = {}
    for answer in store.answers(history=True):
        history.setdefault((answer.annotator, answer.phase, answer.position), []).append(answer)
    found: dict[str, list[Rating]] = {"main": [], "training": []}
    planned: dict[int, int] = {}
    for key, place in places.items():
        if place.phase == "main":
            planned[place.annotator] = planned.get(place.annotator, 0) + 1
        said = history.get(key)
        if said:
            rating = Rating(
                annotator=place.annotator,
                position=place.position,
                item=items[place.item],
                showing=place.showing,
                answer=said[-1],
                first=said[0],
                changes=len(said) - 1,
            )
            found[place.phase].append(rating)
    order = {name: place for place, name in enumerate(store.meta.get("relations", ()))}
    judged = tuple(
        sorted(
            (item for item in items.values() if item.phase == "main" and item.role is Role.ITEM),
            key=lambda item: (order.get(item.relation, len(order)), item.id),
        )
    )
    return Ratings(
        main=tuple(found["main"]),
        training=tuple(found["training"]),
        planned=planned,
        left_out=tuple(sorted(set(leave_out))),
        items=judged,
    )


def level_counts(groups: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    """Return items × 5: how often each level was given."""
    return np.array([np.bincount(levels, minlength=LEVELS + 1)[1:] for levels in groups], dtype=np.int64).reshape(
        -1, LEVELS
    )


def agree_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return items × 2 from items × 5: how many do not agree, and how many do."""
    return np.stack([counts[:, : AGREE - 1].sum(1), counts[:, AGREE - 1 :].sum(1)], axis=1)


def is_expected(item: Item, answer: SavedAnswer) -> bool:
    """Say whether an answer is what is known of an item: each level inside its range, each artefact marked."""
    for name in ("diagnosis", "realism"):
        bounds = item.expected.get(name)
        level = getattr(answer, name)
        if bounds is not None and (level is None or not bounds[0] <= level <= bounds[1]):
            return False
    return set(item.expected.get("marks", ())) <= set(answer.marks or ())
