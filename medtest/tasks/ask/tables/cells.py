"""Cells of answers: relations and questions, with images (or patients, videos) as clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.core.deferred import pd
from medtest.language.questions.questions import in_slide_order
from medtest.results.cube.axes import ALL, OVERALL, Floats, Places
from medtest.results.cube.rates import CASES, Rates, decimals, margins, rates, table
from medtest.results.cube.resampling import Resampler
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions(Places):
    """Places of answers on one set of images.

    Attributes:
        relations: Names in the order of the rows, including the source and ``unchanged``.
        items: Questions in the order of tables.
    """

    relations: tuple[str, ...]
    items: tuple[str, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame, name: str, *, items: Sequence[str] | None = None) -> Questions:
        """Return the places of rows with ``image``, ``item`` and ``relation``.

        Args:
            frame: The rows.
            name: Seeds the random numbers.
            items: Questions in order; None for those of the rows, in the slides' order and followed by others.
        """
        image, images = pd.factorize(frame["image"].to_numpy(dtype=object))
        relation, relations = pd.factorize(frame["relation"].to_numpy(dtype=object))
        codes, names = pd.factorize(frame["item"].to_numpy(dtype=object))
        order = in_order(names) if items is None else items
        place = {question: number for number, question in enumerate(order)}
        item = np.array([place[str(question)] for question in names], np.int64)[codes]
        return cls(
            shape=(len(relations), len(order)),
            dataset=np.zeros(len(image), np.int64),
            cell=relation * len(order) + item,
            cluster=image.astype(np.int64),
            resamplers=(Resampler(len(images), name),),
            relations=tuple(str(relation_name) for relation_name in relations),
            items=tuple(order),
        )

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """Mask of the relations in ``overall``."""
        return np.array([name not in (SOURCE, UNCHANGED) for name in self.relations], dtype=bool)

    def counts(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return sums of a truth value, (relations + overall) × (questions + all)."""
        return np.asarray(margins(self.totals(values), self.pooled)[0], np.int64)

    def rates(self, part: ArrayLike, whole: ArrayLike, *, pools: bool = True) -> Rates:
        """Return rates of all cells and pools; pools are resampled, cells have Wilson's interval over images.

        Args:
            part: Numerators.
            whole: Denominators.
            pools: If False, nothing is resampled.
        """
        resampled = np.full((self.shape[0] + 1, self.shape[1] + 1), pools)
        resampled[:-1, :-1] = False
        return rates(self, part, whole, pools=(CASES,), pooled=self.pooled, resampled=resampled)

    def means(self, values: Floats, known: NDArray[np.bool_]) -> Floats:
        """Return means of known values, rounded, (relations + overall) × (questions + all)."""
        sums = [margins(self.totals(summands), self.pooled)[0] for summands in (np.where(known, values, 0.0), known)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return decimals(sums[0] / sums[1])

    def table(self, columns: Mapping[str, Any], keep: NDArray[np.bool_], order: Sequence[str]) -> pd.DataFrame:
        """Return one row for each selected question and relation, ordered by question.

        Args:
            columns: (relations + overall) × (questions + all) each.
            keep: Mask of the selected cells.
            order: Names of all columns.
        """
        names = ({"item": (*self.items, ALL)}, {"relation": (*self.relations, OVERALL)})
        frame = table(names, {name: np.asarray(value).T for name, value in columns.items()}, keep.T)
        return frame[list(order)]


def in_order(names: Iterable[object]) -> list[str]:
    """Return the distinct questions, those of the slides first and in their order."""
    present = dict.fromkeys(str(name) for name in names)
    in_slides = [question.name for question in in_slide_order() if question.name in present]
    return [*in_slides, *(name for name in present if name not in set(in_slides))]
