"""Images with questions as they lie there: how many are asked, beside the published number, and the line that runs."""

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
"""A suite on real images names no model of its own; this is the one that a line begins with."""


def look_at_questions(root: Path, found: Found, progress: Callable[[int], None]) -> Looked:
    """Read a file of questions and the sizes of its images.

    Args:
        root: The inspected folder.
        found: What a recogniser found there.
        progress: Told how many images' sizes were read.

    Raises:
        LayoutError: Its images are not there.
        UserMistakes: It is no file of questions.
    """
    here = root / found.where
    file = found.tables[0].relative_to(found.where)
    settings = QuestionFolderSettings(file=str(file), images=_images_setting(found))
    gathered = gather(here, settings, dataset="folder")
    entries = [one.entry for one in gathered.askings]
    files = [Pair(image=entry.image) for entry in entries if entry.wrong is None]
    own = look_at(here, files, Rules(reading=FrameReading(), negatives=True), progress)
    wrong = [entry.wrong for entry in entries if entry.wrong is not None]
    return Looked(
        found=found,
        pairs=len(files),
        questions=_in_words(gathered, found),
        sizes=tuple(own.sizes.most_common()),
        problems=tuple(_below(found.where, one) for one in (*gathered.problems, *wrong, *own.problems)),
        notes=tuple(notice.rstrip(".") for notice in gathered.notices),
        line=SuiteLine(suite="medvqa_clef", data=found.where, settings=_settings(here, file, settings)),
    )


def questions_by_content(root: Path, tree: Tree, found: Sequence[Found]) -> list[Found]:
    """Return what was found, and files that a run takes for questions by what they say, whatever they are called."""
    known = {table for one in found for table in one.tables}
    new = [questions_at(tree, path, "") for path in files_of_questions(root) if path not in known]
    added = [one for one in new if one is not None]
    folders = {one.images for one in added}
    kept = [one for one in found if not (one.holds == "images" and one.images in folders)]
    return sorted([*kept, *added], key=lambda one: (one.where, one.rank, one.dataset))


def is_taken_for_questions(root: Path, found: Found) -> bool:
    """Say whether a run on the folder of a file would take it for questions, and refuse it if it cannot read it."""
    return found.tables[0].relative_to(found.where) in files_of_questions(root / found.where)


def _images_setting(found: Found) -> str:
    """Return the folder of images where the seeds would not find it by its name."""
    return "" if found.images == found.where else str(found.images.relative_to(found.where))


def _settings(here: Path, file: PurePosixPath, settings: QuestionFolderSettings) -> tuple[str, ...]:
    needed = [MODEL]
    if files_of_questions(here) != [file]:
        needed.append(f"seeds.folder.file={shown(file)}")
    if settings.images and settings.images.casefold() != "images":
        needed.append(f"seeds.folder.images={shown(settings.images)}")
    return tuple(needed)


def _in_words(gathered: Gathered, found: Found) -> tuple[str, ...]:
    whole = [one for one in gathered.askings if one.entry.wrong is None]
    asked = [(question, answers) for one in whole for question, answers in one.asked]
    kinds = Counter(question.name for question, _ in asked)
    ours = sum(name in kinds for name in (one.name for one in official()))
    others = len(kinds) - ours
    answered = sum(bool(answers) for _, answers in asked)
    pairs = sum(len(answers) for _, answers in asked)
    published = f" of {found.facts.pairs:,} published" if found.facts is not None and found.facts.pairs else ""
    which = [f"{ours} of the 18 of MEDVQA-GI"] if ours else []
    which += [f"{others:,} others"] if others else []
    return (
        f"{len(asked):,} questions ({' and '.join(which)})",
        f"{answered:,} answered",
        f"{pairs:,} pairs of question and answer{published}",
    )


def _below(where: PurePosixPath, problem: SeedProblem) -> SeedProblem:
    return replace(problem, file=shown(where / problem.file))
