"""Images and questions below a folder: the question file, and the image of each row."""

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
"""Depth below the root to which question files are searched."""

HEAD_BYTES = 65_536
"""Bytes at a file's start that contain the word "question" in question files: a header or the first entry."""

MOST_LOOKED_AT = 200
_HEAD_LINES = 5
"""Header lines searched, since spreadsheets may put titles above column names."""

_NAMED = re.compile(r"(?:.*[_\- .])?(?:questions?|vqa|qa)(?:[_\- .].*)?\.(?:csv|tsv|xlsx?|ods)", re.I)
"""Tables named like questions; an unreadable one is reported as a mistake."""

_ASKED = {"q", "query", "prompt", "frage", "pregunta", "answer", "answers"}
_IMAGED = {"image", "img", "img_id", "image_id", "imageid", "image_name", "filename", "file", "image_path", "picture"}
"""Column names typical of questions about images."""

Answered: TypeAlias = "tuple[Question, tuple[str, ...]]"
"""Question with its true answers; empty if unknown."""


Asking: TypeAlias = "tuple[LabelEntry, Sequence[Answered]]"
"""Image with its questions in the order asked."""


@dataclass(slots=True)
class Gathered(Remarks):
    """Images and questions gathered from a folder.

    Attributes:
        keeps: Whether unusable images keep their places.
        askings: Images with questions, in natural order of names.
        file: The question file, or None.
    """

    keeps: bool = True
    askings: list[Asking] = field(default_factory=list)
    file: PurePosixPath | None = None


def gather(root: Path, settings: QuestionFolderSettings, *, dataset: str) -> Gathered:
    """Return the images that a suite selects, with their questions; opens no image.

    Raises:
        LayoutError: A folder that the suite names is missing, or there are no images.
        UserMistakes: There are several question files, or the file is unreadable or lacks requested questions.
    """
    file = question_file(root, settings, dataset=dataset)
    folder = images_folder(root, settings.images)
    files = pictures_below(root, folder, settings.masks)
    gathered = Gathered(file=file, keeps=settings.on_bad_seed == "stop")
    gathered.take(files)
    if file is None:
        entries = _every_image(files, folder, gathered)
        rows: list[Asking] = [(entry, [(question, ()) for question in official()]) for entry in entries]
        images = "1 image is" if len(entries) == 1 else f"{len(entries):,} images are"
        gathered.notices.append(f"No file of questions: {images} asked the questions without a known answer.")
    else:
        rows = _match_images(read(root / file, shown(file)), Images(files), folder, gathered, where=shown(file))
    masks = LabelledFolder(names=(), entries=[entry for entry, _ in rows])
    if settings.masks:
        join_masks(root, HERE / settings.masks, masks)
        gathered.take(masks)
    asked_of = [(entry, questions) for entry, (_, questions) in zip(masks.entries, rows, strict=True)]
    _choose(asked_of, settings.questions, gathered, key=f"seeds.{dataset}.questions")
    gathered.askings.sort(key=lambda item: natural_key(item[0].name))
    return gathered


# ------------------------------------------------------------------------------------------------ the question file


def question_file(root: Path, settings: QuestionFolderSettings, *, dataset: str) -> PurePosixPath | None:
    """Return the question file below a folder: the one that the suite names, else the only one.

    Raises:
        UserMistakes: The named file is missing, or there are several.
    """
    if settings.file:
        table_below(root, settings.file, f"seeds.{dataset}.file")
        return HERE / settings.file
    metadata = HERE / settings.metadata if settings.metadata else None
    paths = [path for path in files_of_questions(root) if path != metadata]
    if len(paths) > 1:
        names = ", ".join(shown(path) for path in paths[:6]) + (" and others" if len(paths) > 6 else "")
        raise UserMistakes(
            [
                Mistake(
                    where=shown(root.name or "."),
                    key=f"seeds.{dataset}.file",
                    found=f"{len(paths)} files of questions: {names}",
                    allowed="the name of one of them",
                    fix=f"seeds.{dataset}.file={shown(paths[0])}",
                )
            ],
            heading="the data folder cannot be used",
        )
    return paths[0] if paths else None


def files_of_questions(root: Path) -> list[PurePosixPath]:
    """Return JSON and CSV files up to two folders deep whose beginning mentions questions.

    If there are none, return tables named like questions, so that reading them reports what is wrong.
    """
    matches: list[PurePosixPath] = []
    named: list[PurePosixPath] = []
    looked = 0
    # Image folders are listed again later, and unreadable ones are reported then.
    folders = walk(root, deepest=DEEPEST, ignored=is_ignored)
    for folder in sorted(folders, key=lambda entry: (len(entry.path.parts), *map(natural_key, entry.path.parts))):
        for name in sorted(set(folder.files) - set(folder.broken), key=natural_key):
            path = folder.path / name
            if _NAMED.fullmatch(name):
                named.append(path)
            if name.lower().endswith(SUFFIXES) and looked < MOST_LOOKED_AT:
                looked += 1
                if _mentions_questions(root / path):
                    matches.append(path)
    return matches or named


def _mentions_questions(path: Path) -> bool:
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


def _match_images(
    rows: Sequence[QuestionRow], images: Images, folder: PurePosixPath, gathered: Gathered, *, where: str
) -> list[Asking]:
    """Assign an image to every row of a question file; rows without image are problems, unused images are counted."""
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
        asked_so_far = by_image.setdefault(path, {})
        before = asked_so_far.get(row.question.name, (row.question, ()))[1]
        asked_so_far[row.question.name] = (row.question, tuple(dict.fromkeys((*before, *row.answers))))
    lost: list[Asking] = []
    for name, count in wrong.items():
        questions = "1 question" if count == 1 else f"{count:,} questions"
        reason = reasons.get(name, f"of {shown(name)}, which has no image")
        problem = SeedProblem(file=where, reason=f"{questions} {reason}")
        if gathered.keeps:
            entry = LabelEntry(image=PurePosixPath(name), name=key_of(name), labels=None, wrong=problem)
            lost.append((entry, list(without[name].values())))
        else:
            gathered.problems.append(problem)
    unused = images.count - len(by_image)
    if unused:
        gathered.notices.append(f"{unused:,} of {images.count:,} images have no question in {where} and are left out.")
    return [
        *(
            (LabelEntry(image=path, name=entry_name(path, folder), labels=None), list(questions.values()))
            for path, questions in by_image.items()
        ),
        *lost,
    ]


def _choose(
    rows: Sequence[Asking],
    names_or_group: str | list[str],
    gathered: Gathered,
    *,
    key: str,
) -> None:
    """Order the requested questions; unknown names are reported in one message."""
    names = {question.name for _, questions in rows for question, _ in questions}
    if isinstance(names_or_group, list):
        gone = [name for name in names_or_group if name not in names]
        if gone:
            raise UserMistakes(
                Mistake(
                    where="suite", key=key, found=f"{name}, which is not asked about any image",
                    allowed="questions of the file", nearest=nearest_name(name, sorted(names)),
                )
                for name in gone
            )  # fmt: skip
    pairs = [pair for _, questions in rows for pair in questions]
    gathered.notices += [notice for notice in (truths_notice(pairs), odd_truths(pairs)) if notice]
    for entry, questions in rows:
        answers = {question.name: truths for question, truths in questions}
        chosen = among((question for question, _ in questions), names_or_group)
        if chosen:
            # Answers with both yes and no are dropped, since every answer would contradict them.
            asked = [(q, () if contradicts(q, answers[q.name]) else answers[q.name]) for q in chosen]
            gathered.askings.append((entry, asked))
    without = len(rows) - len(gathered.askings)
    if without:
        gathered.notices.append(f"{without:,} images have none of the selected questions and are left out.")
    unknown = sum(not truths for _, asked in gathered.askings for _, truths in asked)
    total = sum(len(asked) for _, asked in gathered.askings)
    if gathered.file is not None and unknown:
        gathered.notices.append(f"{unknown:,} of {total:,} questions have no answer and do not count for accuracy.")
