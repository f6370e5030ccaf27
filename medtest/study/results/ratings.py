"""Answers prepared for the report: one row per answered place, and counts by item."""

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
    """An annotator's final answer to one showing of an item.

    Attributes:
        annotator: Number of the annotator.
        position: Position in the annotator's list.
        item: The shown item.
        showing: 1, or 2 if the item is repeated.
        answer: The latest answer.
        first: The first answer, whose time counts; later ones are corrections.
        changes: Number of changes.
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
        level: int | None = getattr(self.answer, question)
        return level


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """All ratings of a study.

    Attributes:
        main: Answers of the main round, including catch items and second showings.
        training: Answers of the training round.
        planned: Length of each annotator's list.
        left_out: Annotators whose answers are ignored.
        items: Items to judge, relation by relation in the order of the suite.
    """

    main: tuple[Rating, ...]
    training: tuple[Rating, ...]
    planned: Mapping[int, int]
    left_out: tuple[int, ...]
    items: tuple[Item, ...]

    @property
    def judged(self) -> list[Rating]:
        """First showings of the items themselves, the basis of means and agreement."""
        return [r for r in self.main if r.showing == 1 and r.item.role is Role.ITEM]

    @property
    def relations(self) -> list[str]:
        """Relations in the order of the suite."""
        return list(dict.fromkeys(item.relation for item in self.items))

    @property
    def annotators(self) -> list[int]:
        """Annotators whose answers are read."""
        return sorted(self.planned)

    def by_item(self) -> dict[int, list[Rating]]:
        """Return the first showings by item, in the order of the items."""
        by_number: dict[int, list[Rating]] = {item.id: [] for item in self.items}
        for rating in self.judged:
            by_number[rating.item.id].append(rating)
        return {number: ratings for number, ratings in by_number.items() if ratings}


def read_ratings(store: StudyStore, leave_out: Sequence[int] = ()) -> Ratings:
    """Read a study's answers.

    Args:
        store: The open study.
        leave_out: Annotators whose answers are ignored.
    """
    items = {item.id: item for item in store.items()}
    places = {(p.annotator, p.phase, p.position): p for p in store.places() if p.annotator not in leave_out}
    history: dict[tuple[int, str, int], list[SavedAnswer]] = {}
    for answer in store.answers(history=True):
        history.setdefault((answer.annotator, answer.phase, answer.position), []).append(answer)
    by_phase: dict[str, list[Rating]] = {"main": [], "training": []}
    planned: dict[int, int] = {}
    for key, place in places.items():
        if place.phase == "main":
            planned[place.annotator] = planned.get(place.annotator, 0) + 1
        versions = history.get(key)
        if versions:
            rating = Rating(
                annotator=place.annotator,
                position=place.position,
                item=items[place.item],
                showing=place.showing,
                answer=versions[-1],
                first=versions[0],
                changes=len(versions) - 1,
            )
            by_phase[place.phase].append(rating)
    order = {name: place for place, name in enumerate(store.meta.get("relations", ()))}
    judged = tuple(
        sorted(
            (item for item in items.values() if item.phase == "main" and item.role is Role.ITEM),
            key=lambda item: (order.get(item.relation, len(order)), item.id),
        )
    )
    return Ratings(
        main=tuple(by_phase["main"]),
        training=tuple(by_phase["training"]),
        planned=planned,
        left_out=tuple(sorted(set(leave_out))),
        items=judged,
    )


def level_counts(groups: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    """Return counts of shape items × 5: how often each level was given."""
    return np.array([np.bincount(levels, minlength=LEVELS + 1)[1:] for levels in groups], dtype=np.int64).reshape(
        -1, LEVELS
    )


def agree_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return counts of shape items × 2 (disagree, agree) from items × 5."""
    return np.stack([counts[:, : AGREE - 1].sum(1), counts[:, AGREE - 1 :].sum(1)], axis=1)


def is_expected(item: Item, answer: SavedAnswer) -> bool:
    """Return True if an answer is as expected: each level within its range, each artefact marked."""
    for name in ("diagnosis", "realism"):
        bounds = item.expected.get(name)
        level = getattr(answer, name)
        if bounds is not None and (level is None or not bounds[0] <= level <= bounds[1]):
            return False
    return set(item.expected.get("marks", ())) <= set(answer.marks or ())
