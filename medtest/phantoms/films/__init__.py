"""Made films: things that move before a still background, with the truth of every frame."""

from medtest.phantoms.films.generator import REVISION, Film, make_film

__all__ = ["REVISION", "Film", "make_film"]
