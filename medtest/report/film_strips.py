"""Film strips of the sequences that flip most, drawn from follow-ups made again: ``samples/film-*.png``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtest.report.material import SAMPLES, sample_index
from medtest.results.decisions import labels_of
from medtest.results.films import Film, Frame
from medtest.runner.films import FilmFrame, draw_film
from medtest.runner.folder import output_problems, writing, writing_text
from medtest.runner.parts import Parts
from medtest.runner.replay import replay_sequence
from medtest.suite.model import Invocation, Suite

INDEX = "films.json"
NONE_TRUE = "none"
"""What stands for an answer without any label."""


def write_films(suite: Suite, invocation: Invocation, folder: Path, films: Sequence[Film], system: str) -> list[str]:
    """Draw the film strips of one system and write their index; those that lie there already are kept.

    The frames are made again; nothing is asked of the system, for its answers are in the records.

    Args:
        suite: The suite.
        invocation: How it was called.
        folder: The system's folder.
        films: What :func:`medtest.results.films.worst_sequences` chose.
        system: The system's name.

    Returns:
        What could not be drawn, in words.

    Raises:
        OutputProblem: A picture cannot be written.
    """
    shown = [] if suite.privacy.images == "none" else list(films)
    entries = [_entry(number, film) for number, film in enumerate(shown, start=1)]
    if entries and entries == film_index(folder):
        return []
    _clear(folder)
    drawn: list[dict[str, Any]] = []
    problems: list[str] = []
    parts: Parts | None = None
    for film, entry in zip(shown, entries, strict=True):
        try:
            parts = parts or Parts(suite, invocation.data, invocation.batch_size)
            images = replay_sequence(suite, invocation, [film.address(frame.frame) for frame in film.frames], parts)
        except Exception as error:  # noqa: BLE001 - a seed source or relation may be anybody's plug-in
            problems.append(f"{system}: a film strip could not be drawn ({type(error).__name__}).")
            continue
        frames = [
            FilmFrame(image=image, lines=_lines(frame), flipped=frame.flipped)
            for image, frame in zip(images, film.frames, strict=True)
        ]
        picture = draw_film(frames, title=_title(film, system), detail=_detail(film))
        _save(picture, folder / SAMPLES / str(entry["file"]))
        drawn.append(entry)
    if drawn:
        with writing_text(folder / SAMPLES / INDEX) as file:
            json.dump(drawn, file, indent=1, ensure_ascii=False)
    return problems


def film_index(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of ``samples/films.json`` whose picture lies beside it."""
    return sample_index(folder, INDEX)


def _entry(number: int, film: Film) -> dict[str, Any]:
    seed = re.sub(r"[^A-Za-z0-9_-]+", "-", film.seed_id)[:40]
    name = f"film-{number:02d}-{film.relation}-s{film.severity}-r{film.repeat}-{seed}.png"
    return {"file": name, "address": film.address(0), **json.loads(json.dumps(asdict(film)))}


def _clear(folder: Path) -> None:
    with output_problems(folder / SAMPLES):
        (folder / SAMPLES).mkdir(parents=True, exist_ok=True)
        for path in (*(folder / SAMPLES).glob("film-*.png"), folder / SAMPLES / INDEX):
            path.unlink(missing_ok=True)


def _save(picture: Any, path: Path) -> None:
    from PIL import Image

    with writing(path) as file:
        Image.fromarray(picture).save(file, format="PNG")


def _lines(frame: Frame) -> list[str]:
    """Return what stands below a frame: its number, then its labels."""
    if frame.label is None:
        return [f"frame {frame.frame}", frame.verdict]
    labels = labels_of(frame.label) or (NONE_TRUE,)
    if len(labels) == 1 and frame.probability is not None:
        return [f"frame {frame.frame}", f"{labels[0]} {frame.probability:.2f}"]
    return [f"frame {frame.frame}", *labels]


def _title(film: Film, system: str) -> str:
    level = f", difficulty {film.severity}" if film.severity else ""
    return f"{film.relation}{level}  ·  {film.dataset}/{film.seed_id}  ·  {system}"


def _detail(film: Film) -> str:
    changed = sum(frame.flipped for frame in film.frames)
    truth = "" if film.expected is None else f"; expected: {', '.join(labels_of(film.expected)) or NONE_TRUE}"
    return f"{changed} of {film.comparisons} comparisons with the reference frame differ{truth}"
