"""Files of captions: COCO's JSON in both layouts, lists, CSV, plain text.

- ``captions_val2017.json`` in COCO's format: ``{"images": [{"id", …}], "annotations": [{"image_id", "caption"}]}``;
- ``dataset_coco.json`` of Karpathy's splits: ``{"images": [{"cocoid", "sentences": [{"raw"}]}]}``;
- by image: ``{"139": ["A woman stands …", …]}``;
- a list of texts or of objects with a caption, an image if any; also one object a line (``.jsonl``);
- CSV with a column ``caption`` and, if there is one, ``image``; plain text, one caption a line.

The files are untrusted: sizes are bounded before parsing, and all problems go into one report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files import decoded
from medtest.core.files.images import BadFileError, read_bytes
from medtest.language.questions.question_files import csv_cells, short

MOST_PIXELS_WORTH = 7_000_000
"""Bound on a file's size, in the units of :func:`read_bytes` (128 MB): COCO's captions of 118,287 images are 92 MB."""
MOST_CAPTIONS = 1_000_000
LONGEST_CAPTION = 2_000
LONGEST_NAME = 200
CAPTION_KEYS = ("caption", "captions", "prompt", "text", "sentence")
IMAGE_KEYS = ("image", "image_id", "imageid", "img_id", "file_name", "filename", "file", "id", "cocoid")
_HALF = re.compile("[\ud800-\udfff]")
"""Halves of characters, which JSON can hold and UTF-8 cannot."""
LAYOUTS = (
    "COCO's JSON (images and annotations, or images with sentences), captions by image ({id: [caption, …]}), a list of "
    "captions, CSV with a column caption, or plain text, one caption a line"
)

Found: TypeAlias = "tuple[Any, Any, str]"
"""Image (None if not named), caption and place in the file, unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionRow:
    """Row of a file of captions.

    Attributes:
        image: Name of the captioned image, or "".
        text: The caption; "" if the row holds no valid one.
        number: Row number in the file, from 1.
        wrong: The problem of a row that holds no valid caption, or "".
        place: Position of such a row in the file ("annotation 12", "line 3").
    """

    image: str = ""
    text: str = ""
    number: int = 0
    wrong: str = ""
    place: str = ""


def read(path: Path, where: str) -> tuple[list[CaptionRow], list[CaptionRow]]:
    """Read a file of captions in any supported layout.

    Args:
        path: The file.
        where: Name of the file for messages.

    Returns:
        The captions in the file's order, and the invalid rows.

    Raises:
        UserMistakes: The file cannot be read, is too large, or has an unknown layout.
    """
    text = text_of(path, where)
    head = text.lstrip()[:1]
    if head in ("{", "[") and path.suffix.lower() not in (".txt", ".csv", ".tsv"):
        rows = _of_json(json_of(text, where), where)
    elif path.suffix.lower() in (".csv", ".tsv"):
        rows = _of_csv(text, where)
    else:
        rows = ((None, line, f"line {number}") for number, line in enumerate(text.splitlines(), 1) if line.strip())
    return _checked(rows, where)


def text_of(path: Path, where: str) -> str:
    """Return the text of a file, whose size is checked before reading.

    Raises:
        UserMistakes: The file cannot be read, is too large, or is not text.
    """
    try:
        return decoded(read_bytes(path, max_pixels=MOST_PIXELS_WORTH))
    except BadFileError as error:
        raise stop(where, str(error)) from error
    except ValueError as error:
        raise stop(where, str(error), fix="save it as UTF-8") from error


def json_of(text: str, where: str) -> Any:
    """Return the content of a JSON file or of a file of JSON lines.

    Raises:
        UserMistakes: The text is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise stop(where, "is nested too deeply") from error
    except ValueError as error:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise stop(where, f"is not JSON ({error})"[:200], line=getattr(error, "lineno", None)) from error


def stop(where: str, problem: str, allowed: str = "", fix: str = "", line: int | None = None) -> UserMistakes:
    """Return the error report on an unusable file."""
    return Mistake(where=where, line=line, key="file", found=problem, allowed=allowed, fix=fix).as_error()


def _of_json(content: Any, where: str) -> Iterator[Found]:
    if isinstance(content, list):
        return _listed(content)
    if not isinstance(content, dict) or not content:
        raise stop(where, f"is {short(content)}", LAYOUTS)
    notes = content.get("annotations")
    if isinstance(notes, list):
        return _coco_annotations(notes, content.get("images"))
    images = content.get("images")
    if (
        isinstance(images, list)
        and images
        and all(isinstance(image, Mapping) and "sentences" in image for image in images)
    ):
        return _split(images)
    if all(isinstance(value, list | str) for value in content.values()):
        return _by_image(content)
    raise stop(where, f"an object with {', '.join(sorted(map(str, content)))[:100]}", LAYOUTS)


def _coco_annotations(notes: list[Any], images: Any) -> Iterator[Found]:
    """Yield COCO's annotations; an annotation of an unlisted image is a mistake if images are listed."""
    listed = images if isinstance(images, list) else []
    image_ids = {str(image.get("id")) for image in listed if isinstance(image, Mapping)}
    for number, note in enumerate(notes, 1):
        place = f"annotation {number}"
        if not isinstance(note, Mapping):
            yield None, note, place
            continue
        image = note.get("image_id")
        if image_ids and str(image) not in image_ids:
            yield None, None, f"{place}, image_id {short(image)}, which is none of the images"
        else:
            yield image, note.get("caption"), place


def _split(images: list[Mapping[str, Any]]) -> Iterator[Found]:
    """Yield the sentences of images in Karpathy's layout."""
    for number, entry in enumerate(images, 1):
        image = next((entry[key] for key in ("cocoid", "imgid", "filename") if key in entry), None)
        sentences = entry["sentences"]
        for at, sentence in enumerate(sentences if isinstance(sentences, list) else [sentences], 1):
            caption = sentence.get("raw") if isinstance(sentence, Mapping) else sentence
            yield image, caption, f"image {number}, sentence {at}"


def _by_image(content: Mapping[str, Any]) -> Iterator[Found]:
    for image, captions in content.items():
        for number, caption in enumerate([captions] if isinstance(captions, str) else captions, 1):
            yield image, caption, f"{short(image)}, caption {number}"


def _listed(content: list[Any]) -> Iterator[Found]:
    for number, entry in enumerate(content, 1):
        place = f"entry {number}"
        if not isinstance(entry, Mapping):
            yield None, entry, place
            continue
        even = {str(key).lower().replace(" ", "_"): value for key, value in entry.items()}
        image = next((even[key] for key in IMAGE_KEYS if key in even), None)
        caption = next((even[key] for key in CAPTION_KEYS if key in even), None)
        for text in caption if isinstance(caption, list) else [caption]:
            yield image, text, place


def _of_csv(text: str, where: str) -> Iterator[Found]:
    def columns(names: list[str], line: int) -> dict[str, int]:
        plain = [name.replace(" ", "_") for name in names]
        caption = next((plain.index(key) for key in CAPTION_KEYS if key in plain), None)
        if caption is None:
            raise Mistake(
                where=where,
                line=line,
                key="caption",
                found=", ".join(names)[:120] or "no header",
                allowed=f"a column {' or '.join(CAPTION_KEYS)}",
                nearest=nearest_name("caption", [name for name in names if name]),
            ).as_error()
        image = next((plain.index(key) for key in IMAGE_KEYS if key in plain), None)
        return {"caption": caption} | ({} if image is None else {"image": image})

    for line, cells in csv_cells(text, columns, partial(stop, where)):
        yield cells.get("image"), cells["caption"], f"line {line}"


def _checked(captions: Iterable[Found], where: str) -> tuple[list[CaptionRow], list[CaptionRow]]:
    rows: list[CaptionRow] = []
    bad: list[CaptionRow] = []
    for number, (image, caption, place) in enumerate(captions, 1):
        if number > MOST_CAPTIONS:
            raise stop(where, f"more than {MOST_CAPTIONS:,} captions", f"at most {MOST_CAPTIONS:,}")
        wrong = _caption_problem(image, caption)
        if wrong:
            bad.append(CaptionRow(image=_name(image), number=number, wrong=wrong, place=place))
        else:
            rows.append(CaptionRow(image=_name(image), text=" ".join(caption.split()), number=number))
    if not rows and not bad:
        raise stop(where, "no caption", LAYOUTS)
    return rows, bad


def _name(image: Any) -> str:
    """Return an image's name; "" if the row names none or an invalid one."""
    if image is None or isinstance(image, bool) or not isinstance(image, str | int):
        return ""
    return str(image).strip() if len(str(image)) <= LONGEST_NAME else ""


def _caption_problem(image: Any, caption: Any) -> str:
    if not isinstance(caption, str):
        return f"{short(caption)} where a caption is expected"
    if not caption.strip():
        return "an empty caption"
    if len(caption) > LONGEST_CAPTION:
        return f"a caption of {len(caption):,} characters, more than {LONGEST_CAPTION:,}"
    if _HALF.search(caption):
        return "a caption with half a character (a lone surrogate, \\ud800 to \\udfff)"
    if image is not None and (isinstance(image, bool) or not isinstance(image, str | int)):
        return f"{short(image)} where an image's name is expected"
    if len(str(image)) > LONGEST_NAME:
        return f"an image's name of {len(str(image)):,} characters, more than {LONGEST_NAME}"
    return ""
