"""Reviewed readings of prompts: what people accepted or corrected, kept in a file beside the prompts."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from medtest.core.errors import Mistake, OutputProblem
from medtest.core.scenes import Pool
from medtest.language.captions.reading.result import PromptReading

ENDING = ".reviewed.json"
"""Ending of the file's name, after the name of the file of prompts."""
MARK = "medtest_reviewed_prompts"
"""First key of the file, with the version of its format."""
VERSION = 1
Verdict: TypeAlias = Literal["accepted", "corrected"]
_MOST_BYTES = 256 * 2**20
MOST_COUNT = 99_999
"""Greatest number of one thing; readings have no greater one."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """Reviewed reading of one prompt.

    Attributes:
        verdict: ``accepted`` as it was read, or ``corrected``.
        reading: What the prompt says; nothing in it is in doubt.
        at: Time of the review, UTC.
    """

    verdict: Verdict
    reading: PromptReading
    at: str = ""


def reviewed_file(prompts: Path) -> Path:
    """Return the path of the reviews of a file of prompts."""
    return prompts.with_name(f"{prompts.name}{ENDING}")


def read_reviews(path: Path) -> dict[str, Review]:
    """Return the reviews by prompt, empty if there is no file.

    Args:
        path: From :func:`reviewed_file`.

    Raises:
        UserMistakes: The file is no file of reviews, or holds an invalid one.
    """
    try:
        if not os.path.lexists(path):
            return {}
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES // 2**20} MB")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get(MARK) != VERSION:
            raise ValueError(f"no {MARK}: {VERSION}")
        return {str(text): _review(str(text), entry) for text, entry in content["prompts"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Mistake(
            where=path.name,
            found=f"a file that medtest prompts review did not write ({error})"[:300],
            allowed="reviews of prompts",
            fix="rename it; reviews are kept under this name",
        ).as_error() from None


def write_review(path: Path, text: str, review: Review | None) -> None:
    """Add, replace or remove (None) the review of a prompt; other reviews in the file stay.

    Args:
        path: From :func:`reviewed_file`.
        text: The prompt.
        review: Its review.

    Raises:
        UserMistakes: The file is the user's own.
        OutputProblem: It cannot be written.
    """
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with _alone_in(path.parent):
            reviews = read_reviews(path)
            reviews.pop(text, None)
            if review is not None:
                reviews[text] = review
            prompts = {text: _as_json(review) for text, review in sorted(reviews.items())}
            with draft.open("w", encoding="utf-8") as file:
                json.dump({MARK: VERSION, "prompts": prompts}, file, ensure_ascii=False, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
    except OSError as error:
        raise OutputProblem(f"{path.name} cannot be written ({error.strerror})") from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process of this machine reviews prompts of a folder."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def reviewed_reading(text: str, pool: Pool, absent: Iterable[Iterable[str]]) -> PromptReading:
    """Return a reading without doubt.

    Args:
        text: The prompt.
        pool: What it asks for.
        absent: What it denies, by names.
    """
    return PromptReading(text=text, pool=pool, absent=tuple(tuple(names) for names in absent))


def _as_json(review: Review) -> dict[str, Any]:
    reading = review.reading
    return {
        "verdict": review.verdict,
        "at": review.at,
        "pool": reading.pool.as_json(),
        "absent": [list(names) for names in reading.absent],
    }


def _review(text: str, entry: Mapping[str, Any]) -> Review:
    verdict = entry["verdict"]
    if verdict not in ("accepted", "corrected"):
        raise ValueError(f"no verdict of {text[:60]!r}")
    absent = [[str(name) for name in names] for names in entry.get("absent", ())]
    if any(not 1 <= len(names) <= 3 for names in absent):
        raise ValueError(f"no names of what {text[:60]!r} denies")
    pool = Pool.of_json(entry["pool"])
    if any(entity.count is not None and not 1 <= entity.count <= MOST_COUNT for entity in pool.entities):
        raise ValueError(f"no number of things in {text[:60]!r}: 1 to {MOST_COUNT:,} are allowed")
    reading = reviewed_reading(text, pool, absent)
    return Review(verdict=verdict, reading=reading, at=str(entry.get("at", "")))


def under_review(reading: PromptReading, reviews: Mapping[str, Review]) -> PromptReading:
    """Return the reviewed reading of a prompt, with the command, style tags and sizes that were read; else the same."""
    review = reviews.get(reading.text)
    if review is None:
        return reading
    measures = reading.measures if review.reading.pool.entities == reading.pool.entities else ()
    return replace(review.reading, measures=measures, command=reading.command, tags=reading.tags)
