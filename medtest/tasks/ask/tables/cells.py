"""Where answers stand: relations and questions, with images (or patients, videos) as clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medtest.language.questions.questions import in_slide_order
from medtest.results.cube.axes import ALL, OVERALL, Floats, Places
from medtest.results.cube.rates import CASES, Rates, decimals, margins, rates, table
from medtest.results.cube.resampling import Resampler
from medtest.tasks.ask.tables.rows import SOURCE, UNCHANGED

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions(Places):
    """Places of answers on one set of images.

    Attributes:
        relations: Names in the order of the rows, the source and ``unchanged`` among them.
        items: Questions in the order of tables.
    """

    relations: tuple[str, ...]
    items: tuple[str, ...]

    @classmethod
    def of(cls, frame: pd.DataFrame, name: str, *, items: Sequence[str] | None = None) -> Questions:
        """Return the places of rows with ``image``, ``item`` and ``relation``.

        Args:
            frame: The rows.
            name: Fixes the random numbers.
            items: Questions in order; None for those of the rows, the slides' first, in their order.
        """
        import pandas as pd

        image, images = pd.factorize(frame["image"].to_numpy(dtype=object))
        relation, relations = pd.factorize(frame["relation"].to_numpy(dtype=object))
        asked, names = pd.factorize(frame["item"].to_numpy(dtype=object))
        order = in_order(names) if items is None else items
        place = {one: number for number, one in enumerate(order)}
        item = np.array([place[str(one)] for one in names], np.int64)[asked]
        return cls(
            shape=(len(relations), len(order)),
            dataset=np.zeros(len(image), np.int64),
            cell=relation * len(order) + item,
            cluster=image.astype(np.int64),
            resamplers=(Resampler(len(images), name),),
            relations=tuple(str(one) for one in relations),
            items=tuple(order),
        )

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """Which relations are in ``overall``."""
        return np.array([name not in (SOURCE, UNCHANGED) for name in self.relations], dtype=bool)

    def counts(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return how many answers are so, (relations + overall) × (questions + all)."""
        return np.asarray(margins(self.totals(values), self.pooled)[0], np.int64)

    def rates(self, part: ArrayLike, whole: ArrayLike, *, pools: bool = True) -> Rates:
        """Return rates of all cells and pools: pools are resampled, cells have Wilson's with images counted once.

        Args:
            part: Numerators.
            whole: Denominators.
            pools: Whether intervals of pools are wanted; without, nothing is resampled.
        """
        resampled = np.full((self.shape[0] + 1, self.shape[1] + 1), pools)
        resampled[:-1, :-1] = False
        return rates(self, part, whole, pools=(CASES,), pooled=self.pooled, resampled=resampled)

    def means(self, values: Floats, known: NDArray[np.bool_]) -> Floats:
        """Return means of known values, rounded, (relations + overall) × (questions + all)."""
        sums = [margins(self.totals(one), self.pooled)[0] for one in (np.where(known, values, 0.0), known)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return decimals(sums[0] / sums[1])

    def table(self, columns: Mapping[str, Any], keep: NDArray[np.bool_], order: Sequence[str]) -> pd.DataFrame:
        """Return a row for each question and relation that is kept, question by question.

        Args:
            columns: Of (relations + overall) × (questions + all) each.
            keep: Which of them.
            order: Names of all columns.
        """
        names = ({"item": (*self.items, ALL)}, {"relation": (*self.relations, OVERALL)})
        made = table(names, {name: np.asarray(value).T for name, value in columns.items()}, keep.T)
        return made[list(order)]


def in_order(names: Iterable[object]) -> list[str]:
    """Return the distinct questions, those of the slides first and in their order."""
    there = dict.fromkeys(str(name) for name in names)
    known = [one.name for one in in_slide_order() if one.name in there]
    return [*known, *(name for name in there if name not in set(known))]
