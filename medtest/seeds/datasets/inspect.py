"""Inspection of a path: data sets, counts against the published ones, sizes, problems and how to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtest.core.errors import UserMistakes, typed_error
from medtest.core.files.images import BadFileError
from medtest.seeds.base import SeedProblem
from medtest.seeds.datasets.base import Found, recognise
from medtest.seeds.datasets.facts import known, suites
from medtest.seeds.datasets.inspect_labels import look_at_labels
from medtest.seeds.datasets.inspect_notes import count_notes, frame_notes, look_at, size_notes, unread_notes
from medtest.seeds.datasets.inspect_questions import (
    MODEL,
    is_taken_for_questions,
    look_at_questions,
    questions_by_content,
)
from medtest.seeds.datasets.inspect_rest import in_words, look_like_maps, set_of_maps, together, unexplained
from medtest.seeds.datasets.known import chosen
from medtest.seeds.datasets.looked import Looked, SuiteLine
from medtest.seeds.datasets.tree import UNREAD_ARCHIVES, Tree, is_archive, tree_of_archive, tree_of_folder
from medtest.seeds.folders.check import Rules, kept_looks
from medtest.seeds.folders.layout import LayoutError, shown
from medtest.seeds.folders.pairing import pair_images, pair_with_masks
from medtest.seeds.volumes.frames import FrameReading

PIXEL_SECONDS = 30.0
"""Seconds spent decoding pictures; after that only headers are read."""
MOST_ARCHIVES = 20
"""Most archives of one folder that are inspected; further ones are listed by name."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Result of inspecting a path.

    Attributes:
        looked: Every data set found.
        ignored: Leftovers of operating systems and thumbnails, by kind, that are skipped.
        notes: Files and folders that cannot be read.
        archives: Contents of archives by path below the root; ``"."`` if the path itself is one.
        suites: Suites whose tables need several known sets, with the images available of each.
        together: Command line that runs on several of the data sets, or None.
        rest: Description of files that belong to no data set.
    """

    looked: tuple[Looked, ...]
    ignored: Mapping[str, int]
    notes: tuple[str, ...] = ()
    archives: Mapping[str, tuple[Looked, ...]] | None = None
    suites: tuple[tuple[SuiteLine, Mapping[str, int]], ...] = ()
    together: SuiteLine | None = None
    rest: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the path holds no image."""
        return not self.looked and not any((self.archives or {}).values())

    @property
    def usable(self) -> bool:
        """Whether a run would accept every file."""
        return not any(looked.problems for looked in self.looked)


def inspect_path(path: Path, *, progress: Progress | None = None, pixel_seconds: float = PIXEL_SECONDS) -> Inspection:
    """Inspect a folder, or an archive without unpacking it, for data sets.

    Args:
        path: A folder or an archive (.zip, .tar, .tar.gz …).
        progress: Called with the number of files read and the total.
        pixel_seconds: Time limit for reading whole files; after that only headers are read.

    Raises:
        UserMistakes: The path does not exist or cannot be read.
    """
    try:
        if path.is_file():
            return _inspect_archive(path)
        if not path.is_dir():
            raise BadFileError("does not exist")
        with kept_looks(pixel_seconds) as looks:
            inspection = _inspect_folder(path, progress or (lambda _done, _total: None))
            return replace(inspection, notes=(*inspection.notes, *unread_notes(looks)))
    except (BadFileError, LayoutError, OSError) as error:
        reason = f"{shown(path)} {error.strerror if isinstance(error, OSError) else error}"
        allowed = "a folder with images, or an archive (.zip, .tar, .tar.gz …)"
        raise typed_error("PATH", reason, allowed) from error


def _inspect_archive(path: Path) -> Inspection:
    if path.name.lower().endswith(UNREAD_ARCHIVES):
        raise BadFileError("is an archive that cannot be looked into; unpack it and give the folder")
    if path.suffix.lower() == ".npz":
        raise BadFileError("is a file of arrays; give the folder that holds it")
    if not is_archive(path.name):
        raise BadFileError("is a file, but no archive")
    tree = tree_of_archive(path)
    inside = tuple(Looked(found=dataset, notes=count_notes(dataset)) for dataset in recognise(tree))
    notes = (*_sums([part.found for part in inside]), *tree.unreadable)
    return Inspection(looked=(), ignored=tree.ignored, notes=notes, archives={".": inside})


def _sums(parts: Sequence[Found]) -> list[str]:
    """Describe how complete a data set is that is present as separate parts."""
    wholes: Counter[str] = Counter()
    for part in parts:
        if part.facts is not None and part.facts.part_of:
            wholes[part.facts.part_of] += part.count
    return [
        f"{known()[name].title} is here with {count:,} of {known()[name].images:,} published images, its parts together"
        for name, count in wholes.items()
    ]


def _inspect_folder(root: Path, progress: Progress) -> Inspection:
    tree = tree_of_folder(root)
    datasets = recognise(tree)
    datasets = questions_by_content(root, tree, datasets)
    total = sum(dataset.count for dataset in datasets)
    looked, done = [], 0
    for dataset in datasets:
        maps = _inspect_maps(root, tree, dataset, datasets)
        inspected = maps or _inspect(root, dataset, lambda number, before=done: progress(before + number, total))  # type: ignore[misc]
        looked.append(_skipping_bad_files(inspected))
        done += dataset.count
    archives, notes = _archives_in(root, tree)
    return Inspection(
        looked=tuple(looked),
        ignored=tree.ignored,
        notes=(
            *_sums(datasets),
            *(f"{shown(text)} is not looked into" for text in tree.unreadable),
            *notes,
        ),
        archives=archives,
        suites=_suites_for(looked),
        together=_together(root, looked),
        rest=tuple(shown(text) for text in in_words(unexplained(tree, datasets))),
    )


def _skipping_bad_files(looked: Looked) -> Looked:
    """Return the result with bad files skipped in its command line; no line if no file would remain."""
    refused = len({problem.file for problem in looked.problems})
    if not refused or looked.line is None:
        return looked
    if not looked.pairs or refused >= looked.pairs:
        return replace(looked, line=None, also=())
    line = replace(looked.line, settings=(*looked.line.settings, "seeds.folder.on_bad_seed=skip"))
    return replace(looked, line=line)


def _together(root: Path, looked: Sequence[Looked]) -> SuiteLine | None:
    settings, datasets = together(root, [inspected.found for inspected in looked])
    if not datasets:
        return None
    places = {dataset.images for dataset in datasets}
    if any(inspected.problems for inspected in looked if inspected.found.images in places):
        settings = (*settings, "seeds.folder.on_bad_seed=skip")
    return SuiteLine(suite="polyp_seg_folder", settings=settings, sets=tuple(dataset.name for dataset in datasets))


def _inspect_maps(root: Path, tree: Tree, candidate: Found, others: Sequence[Found]) -> Looked | None:
    """Inspect a folder of prediction maps; return None if it is none."""
    if not (candidate.holds == "images" or (candidate.holds == "labels" and candidate.reader == "class_folders")):
        return None
    pictures = [candidate.images / path for path in tree.files(candidate.images)]
    if not look_like_maps(root, pictures):
        return None
    maps = replace(candidate, holds="maps", layout="maps of probability, or masks without images", count=len(pictures))
    own = set_of_maps(tree, candidate, others)
    if own is None:
        note = f"run on the images that they are of with model=predictions folder={shown(candidate.images)}"
        return Looked(found=maps, pairs=len(pictures), notes=(note,))
    line = SuiteLine(
        suite="polyp_seg_folder", data=own.where, maps=candidate.images, settings=("only=relation:unchanged",)
    )
    return Looked(found=maps, pairs=len(pictures), line=line)


def _archives_in(root: Path, tree: Tree) -> tuple[dict[str, tuple[Looked, ...]], list[str]]:
    inside: dict[str, tuple[Looked, ...]] = {}
    notes = []
    names = [folder / name for folder, files in tree.folders.items() for name in files]
    for name in sorted(names):
        if name.name.lower().endswith(UNREAD_ARCHIVES):
            notes.append(f"{shown(name)} cannot be looked into; unpack it")
        elif is_archive(name.name) and len(inside) < MOST_ARCHIVES:
            try:
                packed = recognise(tree_of_archive(root / name))
            except (BadFileError, OSError):
                notes.append(f"{shown(name)} is not an archive that can be read, or is damaged")
                continue
            inside[str(name)] = tuple(Looked(found=dataset, notes=count_notes(dataset)) for dataset in packed)
    return inside, notes


# --------------------------------------------------------------------------------------------------------- one data set


def _inspect_tables(root: Path, dataset: Found, progress: Callable[[int], None]) -> Looked:
    """Inspect a data set with files of labels or questions."""
    labels = dataset.holds == "labels"
    try:
        looked = (look_at_labels if labels else look_at_questions)(root, dataset, progress)
    except (LayoutError, UserMistakes) as error:
        reason = f"{error.found}; {error.fix}" if isinstance(error, LayoutError) else _first_mistake(error)
        meant = dataset.reader != "table" if labels else dataset.dataset or is_taken_for_questions(root, dataset)
        if not meant:  # only the name resembles a table; the user did not ask for it
            return Looked(found=dataset, notes=(f"not taken for {dataset.holds}: {reason}",))
        where = shown(dataset.tables[0] if dataset.tables else dataset.where)
        return Looked(found=dataset, pairs=0, problems=(SeedProblem(file=where, reason=reason),))
    dataset = replace(dataset, count=looked.pairs or 0)
    unconfirmed = (
        (f"not confirmed: {dataset.facts.unconfirmed}",) if dataset.facts and dataset.facts.unconfirmed else ()
    )
    return replace(looked, found=dataset, notes=(*count_notes(dataset), *looked.notes, *unconfirmed))


def _first_mistake(error: UserMistakes) -> str:
    mistake = error.mistakes[0]
    return f"{mistake.found}" + (f"; {mistake.fix}" if mistake.fix else "")


def _inspect(root: Path, candidate: Found, progress: Callable[[int], None]) -> Looked:
    if candidate.holds in ("labels", "questions"):
        return _inspect_tables(root, candidate, progress)
    line = _line(candidate)
    dataset = candidate.as_dataset(candidate.dataset or "set")
    try:
        pairing = pair_images(root, dataset) if candidate.holds == "images" else pair_with_masks(root, dataset)
    except LayoutError as error:
        problem = SeedProblem(file=shown(candidate.where), reason=f"{error.found}; {error.fix}")
        return Looked(found=candidate, pairs=0, notes=count_notes(candidate), problems=(problem,), line=None)
    sizes, problems, notices = look_at(root, pairing.pairs, Rules(reading=FrameReading(), negatives=False), progress)
    frames = sum(sizes.values())
    return Looked(
        found=candidate,
        pairs=len(pairing.pairs),
        sizes=tuple(sizes.most_common()),
        rule=pairing.rule if pairing.rule != "<name>" else "",
        notes=(
            *count_notes(candidate),
            *size_notes(candidate, sizes),
            *frame_notes(frames, len(pairing.pairs)),
            *(notice.rstrip(".") for notice in notices),
        ),
        problems=(*pairing.all_problems(), *problems),
        line=line,
        also=_question_line(candidate),
    )


def _line(dataset: Found) -> SuiteLine | None:
    if dataset.holds == "images":
        return SuiteLine(suite="polyp_seg_unlabelled", data=dataset.where)
    if dataset.holds != "masks":
        return None
    if dataset.image_names and dataset.image_names == dataset.mask_names:  # one of several sets in one folder
        settings = ("seeds.folder.layout=known", f"seeds.folder.sets=[{dataset.dataset}]")
        return SuiteLine(suite="polyp_seg_folder", data=dataset.where, settings=settings, sets=(dataset.dataset,))
    return SuiteLine(suite="polyp_seg_folder", data=dataset.where)


def _question_line(dataset: Found) -> tuple[tuple[str, SuiteLine], ...]:
    """Return the line that asks the 18 questions of MEDVQA-GI about unlabelled images."""
    if dataset.holds != "images":
        return ()
    line = SuiteLine(suite="medvqa_clef", data=dataset.images, settings=(MODEL,))
    return (("to ask a model the 18 questions of MEDVQA-GI, endoscopy images only", line),)


# ---------------------------------------------------------------------------------------------------------- suites


def _suites_for(looked: Sequence[Looked]) -> tuple[tuple[SuiteLine, Mapping[str, int]], ...]:
    """Return the suites that need several known sets of which at least one is present, with image counts."""
    lines: list[tuple[SuiteLine, Mapping[str, int]]] = []
    for suite, needed in suites().items():
        selected = chosen([inspected.found for inspected in looked], needed)
        counts = {name: sum(f.count for f in parts) for name, parts in selected.items()}
        if any(counts.get(name) for name in needed):
            line = SuiteLine(suite=suite, sets=tuple(name for name in needed if counts.get(name)))
            lines.append((line, {name: counts.get(name, 0) for name in needed}))
    return tuple(lines)
