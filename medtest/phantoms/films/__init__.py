"""Synthetic films: things moving in front of a still background, with the ground truth of every frame."""

from medtest.phantoms.films.generator import REVISION, Film, make_film

__all__ = ["REVISION", "Film", "make_film"]
