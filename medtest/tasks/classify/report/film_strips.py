"""Film strips of the sequences with most flips, drawn from regenerated follow-ups: ``samples/film-*.png``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtest.core.cases import Image
from medtest.report.replayed import PictureKind, ReplayedPicture
from medtest.runner.pictures.films import FilmFrame, draw_film
from medtest.runner.pictures.panels import save
from medtest.tasks.classify.tables.decisions import labels_of
from medtest.tasks.classify.tables.films import FilmSequence, StripFrame

FILMS = PictureKind(index="films.json", files="film-*.png", undrawn="a film strip could not be drawn")
NONE_TRUE = "none"
"""Text for an answer without any label."""


def film_pictures(films: Sequence[FilmSequence], system: str) -> list[ReplayedPicture]:
    """Return the film strips of one system; the system is not called, since its answers are recorded.

    Args:
        films: Sequences from :func:`medtest.tasks.classify.tables.films.worst_sequences`.
        system: Name of the system.
    """
    return [_picture(number, film, system) for number, film in enumerate(films, start=1)]


def _picture(number: int, film: FilmSequence, system: str) -> ReplayedPicture:
    seed = re.sub(r"[^A-Za-z0-9_-]+", "-", film.seed_id)[:40]
    name = f"film-{number:02d}-{film.relation}-s{film.severity}-r{film.repeat}-{seed}.png"
    entry = {"file": name, "address": film.address(0), **json.loads(json.dumps(asdict(film)))}

    def draw(images: Sequence[Image | None], path: Path) -> dict[str, Any]:
        _save(images, film, system, path)
        return {}

    return ReplayedPicture(entry=entry, addresses=[film.address(frame.frame) for frame in film.frames], draw=draw)


def _save(images: Sequence[Image | None], film: FilmSequence, system: str, path: Path) -> None:
    frames = [
        FilmFrame(image=image, lines=_lines(frame), flipped=frame.flipped)
        for image, frame in zip(images, film.frames, strict=True)
    ]
    save(draw_film(frames, title=_title(film, system), detail=_detail(film)), path)


def _lines(frame: StripFrame) -> list[str]:
    """Return the caption of a frame: its number, then its labels."""
    if frame.label is None:
        return [f"frame {frame.frame}", frame.verdict]
    labels = labels_of(frame.label) or (NONE_TRUE,)
    if len(labels) == 1 and frame.probability is not None:
        return [f"frame {frame.frame}", f"{labels[0]} {frame.probability:.2f}"]
    return [f"frame {frame.frame}", *labels]


def _title(film: FilmSequence, system: str) -> str:
    level = f", difficulty {film.severity}" if film.severity else ""
    return f"{film.relation}{level}  ·  {film.dataset}/{film.seed_id}  ·  {system}"


def _detail(film: FilmSequence) -> str:
    changed = sum(frame.flipped for frame in film.frames)
    truth = "" if film.expected is None else f"; expected: {', '.join(labels_of(film.expected)) or NONE_TRUE}"
    return f"{changed} of {film.comparisons} comparisons with the reference frame differ{truth}"
