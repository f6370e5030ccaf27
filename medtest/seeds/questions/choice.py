"""Images and their questions below a folder: which file is the file of questions, and which image each row means."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from medtest.core.errors import Mistake, UserMistakes, nearest_name
from medtest.core.files.walk import walk
from medtest.language.questions.question_files import QuestionRow, read
from medtest.language.questions.questions import Question, official
from medtest.seeds.base import Remarks, SeedProblem
from medtest.seeds.folders.files import table_below
from medtest.seeds.folders.formats import is_ignored
from medtest.seeds.folders.layout import natural_key, shown
from medtest.seeds.folders.pairing import Files
from medtest.seeds.labels.entries import LabelEntry, LabelledFolder
from medtest.seeds.labels.layouts.common import Images, entry_name, images_folder, join_masks, key_of, pictures_below
from medtest.seeds.questions.settings import QuestionFolderSettings, among
from medtest.seeds.questions.truths import contradicts, odd_truths, truths_notice

HERE = PurePosixPath(".")
SUFFIXES = (".json", ".jsonl", ".csv")
"""Suffixes of files of questions."""

DEEPEST = 2
"""Folders below the root in which a file of questions is looked for."""

HEAD_BYTES = 65_536
"""The start of a file in which the word "question" stands if it is one: a header, or the first entry."""

MOST_LOOKED_AT = 200
_HEAD_LINES = 5
"""Spreadsheets put titles above the names of columns."""

_NAMED = re.compile(r"(?:.*[_\- .])?(?:questions?|vqa|qa)(?:[_\- .].*)?\.(?:csv|tsv|xlsx?|ods)", re.I)
"""Tables called like questions: one that cannot be read is a mistake, and no reason to ask others."""

_ASKED = {"q", "query", "prompt", "frage", "pregunta", "answer", "answers"}
_IMAGED = {"image", "img", "img_id", "image_id", "imageid", "image_name", "filename", "file", "image_path", "picture"}
"""Names of columns that look like questions of images, read or not."""

Answered: TypeAlias = "tuple[Question, tuple[str, ...]]"
"""A question with its true answers; empty where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionedImage:
    """An image and what is asked of it.

    Attributes:
        entry: The image.
        asked: Questions in the order in which they are asked, each with its true answers (empty: not known).
    """

    entry: LabelEntry
    asked: tuple[Answered, ...]


@dataclass(slots=True)
class Gathered(Remarks):
    """Images with their questions as they lie below a folder.

    Attributes:
        keeps: Whether images that cannot be used keep their places.
        askings: Images that are asked about, in natural order of names.
        file: The file of questions; None where there is none.
    """

    keeps: bool = True
    askings: list[QuestionedImage] = field(default_factory=list)
    file: PurePosixPath | None = None


def gather(root: Path, settings: QuestionFolderSettings, *, dataset: str) -> Gathered:
    """Return the images that a suite means, with their questions; opens no image.

    Raises:
        LayoutError: A folder that the suite names is not there, or there are no images.
        UserMistakes: Several files of questions, one that cannot be read, or questions that it does not have.
    """
    file = question_file(root, settings, dataset=dataset)
    folder = images_folder(root, settings.images)
    files = pictures_below(root, folder, settings.masks)
    gathered = Gathered(file=file, keeps=settings.on_bad_seed == "stop")
    gathered.take(files)
    if file is None:
        entries = _every_image(files, folder, gathered)
        rows: list[tuple[LabelEntry, list[Answered]]] = [
            (entry, [(one, ()) for one in official()]) for entry in entries
        ]
        images = "1 image is" if len(entries) == 1 else f"{len(entries):,} images are"
        gathered.notices.append(f"No file of questions: {images} asked the questions without a known answer.")
    else:
        rows = _matched(read(root / file, shown(file)), Images(files), folder, gathered, where=shown(file))
    masks = LabelledFolder(names=(), entries=[entry for entry, _ in rows])
    if settings.masks:
        join_masks(root, HERE / settings.masks, masks)
        gathered.take(masks)
    asked_of = [(entry, asked) for entry, (_, asked) in zip(masks.entries, rows, strict=True)]
    _choose(asked_of, settings.questions, gathered, key=f"seeds.{dataset}.questions")
    gathered.askings.sort(key=lambda one: natural_key(one.entry.name))
    return gathered


# ----------------------------------------------------------------------------------------------- the file of questions


def question_file(root: Path, settings: QuestionFolderSettings, *, dataset: str) -> PurePosixPath | None:
    """Return the file of questions below a folder: the one that the suite names, else the only one there is.

    Raises:
        UserMistakes: The named one is not there, or there are several.
    """
    if settings.file:
        table_below(root, settings.file, f"seeds.{dataset}.file")
        return HERE / settings.file
    metadata = HERE / settings.metadata if settings.metadata else None
    found = [path for path in files_of_questions(root) if path != metadata]
    if len(found) > 1:
        names = ", ".join(shown(path) for path in found[:6]) + (" and others" if len(found) > 6 else "")
        raise UserMistakes(
            [
                Mistake(
                    where=shown(root.name or "."),
                    key=f"seeds.{dataset}.file",
                    found=f"{len(found)} files of questions: {names}",
                    allowed="the name of one of them",
                    fix=f"seeds.{dataset}.file={shown(found[0])}",
                )
            ],
            heading="the data folder cannot be used",
        )
    return found[0] if found else None


def files_of_questions(root: Path) -> list[PurePosixPath]:
    """Return the JSON and CSV files in a folder, or two below it, whose beginning speaks of questions.

    Where there is none, tables that are called like questions, for reading them says what is wrong with them.
    """
    found: list[PurePosixPath] = []
    named: list[PurePosixPath] = []
    looked = 0
    # Folders of images are listed again, and one that cannot be read is said there.
    folders = walk(root, deepest=DEEPEST, ignored=is_ignored)
    for folder in sorted(folders, key=lambda one: (len(one.path.parts), *map(natural_key, one.path.parts))):
        for name in sorted(set(folder.files) - set(folder.broken), key=natural_key):
            path = folder.path / name
            if _NAMED.fullmatch(name):
                named.append(path)
            if name.lower().endswith(SUFFIXES) and looked < MOST_LOOKED_AT:
                looked += 1
                if _speaks_of_questions(root / path):
                    found.append(path)
    return found or named


def _speaks_of_questions(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    wide = head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = head.decode("utf-16" if wide else "utf-8-sig", errors="replace").lower()
    if not path.name.lower().endswith(".csv"):
        return "question" in text
    lines = text.splitlines()
    cells = {cell.strip("\"' \t") for cell in re.split(r"[,;\t]", lines[0])} if lines else set()
    asks = bool(cells & _ASKED) and bool(cells & _IMAGED)
    return asks or any("question" in line for line in lines[:_HEAD_LINES])


# ------------------------------------------------------------------------------------------------------------- images


def _every_image(files: Files, folder: PurePosixPath, gathered: Gathered) -> list[LabelEntry]:
    entries = []
    for paths in files.by_key.values():
        entry = LabelEntry(image=paths[0], name=entry_name(paths[0], folder), labels=None)
        doubled = [
            SeedProblem(file=shown(path), reason=f"has the same name as {shown(paths[0].name)}") for path in paths[1:]
        ]
        gathered.problems += doubled[1:]
        entries.append(replace(entry, wrong=doubled[0]) if doubled and gathered.keeps else entry)
        if not gathered.keeps:
            gathered.problems += doubled[:1]
    return entries


def _matched(
    rows: Sequence[QuestionRow], images: Images, folder: PurePosixPath, gathered: Gathered, *, where: str
) -> list[tuple[LabelEntry, list[Answered]]]:
    """Give every row of a file of questions its image; what has none is a problem, images without a row are counted."""
    by_image: dict[PurePosixPath, dict[str, Answered]] = {}
    without: dict[str, dict[str, Answered]] = {}
    wrong: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for row in rows:
        try:
            path = images.find(row.image)
        except KeyError as error:
            path, reasons[row.image] = None, f"of {shown(row.image)}, which {error.args[0]}"
        if path is None:
            wrong[row.image] += 1
            without.setdefault(row.image, {})[row.question.name] = (row.question, row.answers)
            continue
        known = by_image.setdefault(path, {})
        before = known.get(row.question.name, (row.question, ()))[1]
        known[row.question.name] = (row.question, tuple(dict.fromkeys((*before, *row.answers))))
    lost: list[tuple[LabelEntry, list[Answered]]] = []
    for name, count in wrong.items():
        questions = "1 question" if count == 1 else f"{count:,} questions"
        reason = reasons.get(name, f"of {shown(name)}, of which there is no image")
        problem = SeedProblem(file=where, reason=f"{questions} {reason}")
        if gathered.keeps:
            entry = LabelEntry(image=PurePosixPath(name), name=key_of(name), labels=None, wrong=problem)
            lost.append((entry, list(without[name].values())))
        else:
            gathered.problems.append(problem)
    left = images.count - len(by_image)
    if left:
        gathered.notices.append(f"{left:,} of {images.count:,} images have no question in {where} and are left out.")
    return [
        *(
            (LabelEntry(image=path, name=entry_name(path, folder), labels=None), list(asked.values()))
            for path, asked in by_image.items()
        ),
        *lost,
    ]


def _of_use(question: Question, answers: tuple[str, ...]) -> tuple[str, ...]:
    """Return true answers; none where they say yes and no, which every answer would contradict."""
    return () if contradicts(question, answers) else answers


def _choose(
    rows: Sequence[tuple[LabelEntry, list[Answered]]],
    wanted: str | list[str],
    gathered: Gathered,
    *,
    key: str,
) -> None:
    """Put the questions that are asked into order; names of which there is no question are one message."""
    names = {question.name for _, asked in rows for question, _ in asked}
    if isinstance(wanted, list):
        gone = [name for name in wanted if name not in names]
        if gone:
            raise UserMistakes(
                Mistake(
                    where="suite", key=key, found=f"{name}, which is asked of no image",
                    allowed="questions that are in the file of questions", nearest=nearest_name(name, sorted(names)),
                )
                for name in gone
            )  # fmt: skip
    given = [one for _, asked in rows for one in asked]
    gathered.notices += [notice for notice in (truths_notice(given), odd_truths(given)) if notice]
    for entry, asked in rows:
        answers = {question.name: given for question, given in asked}
        chosen = among((question for question, _ in asked), wanted)
        if chosen:
            gathered.askings.append(
                QuestionedImage(
                    entry=entry,
                    asked=tuple((question, _of_use(question, answers[question.name])) for question in chosen),
                )
            )
    without = len(rows) - len(gathered.askings)
    if without:
        gathered.notices.append(f"{without:,} images have none of the questions that are asked and are left out.")
    unknown = sum(not given for one in gathered.askings for _, given in one.asked)
    total = sum(len(one.asked) for one in gathered.askings)
    if gathered.file is not None and unknown:
        gathered.notices.append(f"{unknown:,} of {total:,} questions have no answer: accuracy is of the others.")
