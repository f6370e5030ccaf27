"""What a relation put into an image, as the expectations ask for it: from a follow-up's effect."""

from __future__ import annotations

from medtest.core.cases import Effect, Json
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.expectations import LEAST_SHARE, Inserted


def inserted_of(effect: Effect) -> Inserted | None:
    """Return what an effect inserted, or None where it inserted nothing.

    Its cells are those that hold a good part of what was inserted (``grid``, nine shares row by row), as
    :func:`medtest.language.questions.expectations.cells_of` counts them; without a grid those in which the ``places``
    lie.

    Args:
        effect: Of kind ``add``: ``count``, and ``grid`` or ``places`` (x and y as fractions of the image's sides);
            ``names``, where it is known what would be rightly called.
    """
    if not effect.adds:
        return None
    data = effect.data
    count = data.get("count", 1)
    names = data.get("names")
    return Inserted(
        count=int(count) if isinstance(count, int | float) else 1,
        names=frozenset(str(name) for name in names) if isinstance(names, list) else frozenset(),
        cells=_cells(data.get("grid"), data.get("places")),
    )


def _cells(grid: Json, places: Json) -> frozenset[str]:
    shares = [float(one) for one in grid if isinstance(one, int | float)] if isinstance(grid, list) else []
    if len(shares) == len(CELLS) and max(shares) > 0:
        most = max(shares)
        return frozenset(cell for cell, one in zip(CELLS, shares, strict=True) if one >= LEAST_SHARE or one == most)
    found = [_cell(place) for place in places] if isinstance(places, list) else []
    return frozenset(cell for cell in found if cell)


def _cell(place: Json) -> str:
    if not isinstance(place, list) or len(place) != 2:
        return ""
    x, y = place
    if not isinstance(x, int | float) or not isinstance(y, int | float):
        return ""
    column, row = (min(max(int(3 * one), 0), 2) for one in (x, y))
    return CELLS[3 * row + column]
