"""Objects inserted by a relation, from a follow-up's effect, in the form of the expectations."""

from __future__ import annotations

from medtest.core.cases import Effect, Json
from medtest.language.questions.answers.extract.place import CELLS
from medtest.language.questions.expectations import LEAST_SHARE, Inserted


def inserted_of(effect: Effect) -> Inserted | None:
    """Return the objects that an effect inserted, or None.

    Their cells are those with a sufficient share of the objects (``grid``, nine shares row by row), as in
    :func:`medtest.language.questions.expectations.cells_of`; without a grid those of the ``places``.

    Args:
        effect: Effect of kind ``add``: ``count``, and ``grid`` or ``places`` (x and y as fractions of the image's
            sides);
            ``names``, if the right names are known.
    """
    if effect.kind != "add":
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
    shares = [float(share) for share in grid if isinstance(share, int | float)] if isinstance(grid, list) else []
    if len(shares) == len(CELLS) and max(shares) > 0:
        largest = max(shares)
        return frozenset(
            cell for cell, share in zip(CELLS, shares, strict=True) if share >= LEAST_SHARE or share == largest
        )
    cells = [_cell(place) for place in places] if isinstance(places, list) else []
    return frozenset(cell for cell in cells if cell)


def _cell(place: Json) -> str:
    if not isinstance(place, list) or len(place) != 2:
        return ""
    x, y = place
    if not isinstance(x, int | float) or not isinstance(y, int | float):
        return ""
    column, row = (min(max(int(3 * coordinate), 0), 2) for coordinate in (x, y))
    return CELLS[3 * row + column]
