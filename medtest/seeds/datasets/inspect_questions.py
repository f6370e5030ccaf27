"""Inspection of images with questions: number of questions, the published number and the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from medtest.language.questions.questions import official
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found
from medtest.seeds.datasets.inspect_notes import look_at
from medtest.seeds.datasets.looked import Looked, SuiteLine
from medtest.seeds.datasets.recognisers.question_files import questions_at
from medtest.seeds.datasets.tree import Tree
from medtest.seeds.folders.check import Rules
from medtest.seeds.folders.layout import Pair, shown
from medtest.seeds.questions.choice import Gathered, files_of_questions, gather
from medtest.seeds.questions.settings import QuestionFolderSettings
from medtest.seeds.volumes.frames import FrameReading

MODEL = "model=openai_compatible"
"""Model of the suggested line, since a suite on real images has no default model."""


def look_at_questions(root: Path, dataset: Found, progress: Callable[[int], None]) -> Looked:
    """Read a file of questions and the sizes of its images.

    Args:
        root: The inspected folder.
        dataset: The recogniser's result.
        progress: Called with the number of images read.

    Raises:
        LayoutError: The images are missing.
        UserMistakes: The file holds no questions.
    """
    folder = root / dataset.where
    file = dataset.tables[0].relative_to(dataset.where)
    # The seed source finds images in the file's own folder without a setting.
    images = "" if dataset.images == dataset.where else str(dataset.images.relative_to(dataset.where))
    settings = QuestionFolderSettings(file=str(file), images=images)
    gathered = gather(folder, settings, dataset="folder")
    entries = [entry for entry, _ in gathered.askings]
    files = [Pair(image=entry.image) for entry in entries if entry.wrong is None]
    sizes, problems, _ = look_at(folder, files, Rules(reading=FrameReading(), negatives=True), progress)
    wrong = [entry.wrong for entry in entries if entry.wrong is not None]
    return Looked(
        found=dataset,
        pairs=len(files),
        questions=_summary_lines(gathered, dataset),
        sizes=tuple(sizes.most_common()),
        problems=tuple(_below(dataset.where, problem) for problem in (*gathered.problems, *wrong, *problems)),
        notes=tuple(notice.rstrip(".") for notice in gathered.notices),
        line=SuiteLine(suite="medvqa_clef", data=dataset.where, settings=_settings(folder, file, settings)),
    )


def questions_by_content(root: Path, tree: Tree, datasets: Sequence[Found]) -> list[Found]:
    """Return the data sets plus question files that are recognised by content, regardless of name."""
    tables = {table for dataset in datasets for table in dataset.tables}
    new = [questions_at(tree, path, "") for path in files_of_questions(root) if path not in tables]
    added = [dataset for dataset in new if dataset is not None]
    folders = {dataset.images for dataset in added}
    others = [dataset for dataset in datasets if not (dataset.holds == "images" and dataset.images in folders)]
    return sorted([*others, *added], key=lambda dataset: (dataset.where, dataset.rank, dataset.dataset))


def is_taken_for_questions(root: Path, dataset: Found) -> bool:
    """Return True if a run on the file's folder would read it as questions, and refuse it if it cannot."""
    return dataset.tables[0].relative_to(dataset.where) in files_of_questions(root / dataset.where)


def _settings(folder: Path, file: PurePosixPath, settings: QuestionFolderSettings) -> tuple[str, ...]:
    needed = [MODEL]
    if files_of_questions(folder) != [file]:
        needed.append(f"seeds.folder.file={shown(file)}")
    if settings.images and settings.images.casefold() != "images":
        needed.append(f"seeds.folder.images={shown(settings.images)}")
    return tuple(needed)


def _summary_lines(gathered: Gathered, dataset: Found) -> tuple[str, ...]:
    questions = [pair for entry, asked in gathered.askings if entry.wrong is None for pair in asked]
    kinds = Counter(question.name for question, _ in questions)
    official_count = sum(name in kinds for name in (question.name for question in official()))
    others = len(kinds) - official_count
    answered = sum(bool(answers) for _, answers in questions)
    pairs = sum(len(answers) for _, answers in questions)
    published = f" of {dataset.facts.pairs:,} published" if dataset.facts is not None and dataset.facts.pairs else ""
    which = [f"{official_count} of the 18 of MEDVQA-GI"] if official_count else []
    which += [f"{others:,} others"] if others else []
    return (
        f"{len(questions):,} questions ({' and '.join(which)})",
        f"{answered:,} answered",
        f"{pairs:,} pairs of question and answer{published}",
    )


def _below(where: PurePosixPath, problem: SeedProblem) -> SeedProblem:
    return replace(problem, file=shown(where / problem.file))
