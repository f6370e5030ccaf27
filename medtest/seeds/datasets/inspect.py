"""What lies below a path: data sets, counts beside the published ones, sizes, problems, and how to run on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medtest.core.errors import Mistake, UserMistakes
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
from medtest.seeds.folders.layout import DataSet, LayoutError, shown
from medtest.seeds.folders.pairing import pair_images, pair_with_masks
from medtest.seeds.volumes.frames import FrameReading

PIXEL_SECONDS = 30.0
"""How long pictures are decoded; what is left then is seen by its header."""
MOST_ARCHIVES = 20
"""More archives in one folder are listed by name alone."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What lies below a path.

    Attributes:
        looked: Every data set found.
        ignored: Leftovers of operating systems and thumbnails, by kind, that are passed over.
        notes: What cannot be read or looked into.
        archives: What archives hold, by their path below the root; ``"."`` where the path itself is one.
        suites: Suites whose tables need several known sets, with what there is of them.
        together: How one run takes several of the data sets, or None.
        rest: Files that no data set takes and no run reads, in words.
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
        """Whether no image was found anywhere."""
        return not self.looked and not any((self.archives or {}).values())

    @property
    def usable(self) -> bool:
        """Whether a run would take every file."""
        return not any(looked.problems for looked in self.looked)


def inspect_path(path: Path, *, progress: Progress | None = None, pixel_seconds: float = PIXEL_SECONDS) -> Inspection:
    """Say what data sets lie below a folder, or in an archive, which is not unpacked.

    Args:
        path: A folder or an archive (.zip, .tar, .tar.gz …).
        progress: Told how many of how many files' sizes were read.
        pixel_seconds: How long files are read to their end; of what is left then headers alone are.

    Raises:
        UserMistakes: There is nothing at the path, or it can be neither read nor looked into.
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
        found = f"{shown(path)} {error.strerror if isinstance(error, OSError) else error}"
        allowed = "a folder with images, or an archive (.zip, .tar, .tar.gz …)"
        raise Mistake(where="command line", key="PATH", found=found, allowed=allowed).as_error() from error


def _inspect_archive(path: Path) -> Inspection:
    if path.name.lower().endswith(UNREAD_ARCHIVES):
        raise BadFileError("is an archive that cannot be looked into; unpack it and give the folder")
    if path.suffix.lower() == ".npz":
        raise BadFileError("is a file of arrays; give the folder that holds it")
    if not is_archive(path.name):
        raise BadFileError("is a file, but no archive")
    tree = tree_of_archive(path)
    inside = tuple(Looked(found=found, notes=count_notes(found)) for found in recognise(tree))
    notes = (*_sums([one.found for one in inside]), *tree.unreadable)
    return Inspection(looked=(), ignored=tree.ignored, notes=notes, archives={".": inside})


def _sums(found: Sequence[Found]) -> list[str]:
    """Say how much there is of a set that lies there in parts of their own."""
    wholes: Counter[str] = Counter()
    for one in found:
        if one.facts is not None and one.facts.part_of:
            wholes[one.facts.part_of] += one.count
    return [
        f"{known()[name].title} is here with {count:,} of {known()[name].images:,} published images, its parts together"
        for name, count in wholes.items()
    ]


def _inspect_folder(root: Path, progress: Progress) -> Inspection:
    tree = tree_of_folder(root)
    found = recognise(tree)
    found = questions_by_content(root, tree, found)
    total = sum(one.count for one in found)
    looked, done = [], 0
    for one in found:
        maps = _look_maps(root, tree, one, found)
        told = maps or _look(root, one, lambda number, before=done: progress(before + number, total))  # type: ignore[misc]
        looked.append(_without_refused(told))
        done += one.count
    archives, notes = _archives_in(root, tree)
    return Inspection(
        looked=tuple(looked),
        ignored=tree.ignored,
        notes=(
            *_sums(found),
            *(f"{shown(text)} is not looked into" for text in tree.unreadable),
            *notes,
        ),
        archives=archives,
        suites=_suites_for(looked),
        together=_together(root, looked),
        rest=tuple(shown(text) for text in in_words(unexplained(tree, found))),
    )


def _without_refused(looked: Looked) -> Looked:
    """Return a look whose line runs: bad files are left out, and where nothing would be left there is no line."""
    refused = len({problem.file for problem in looked.problems})
    if not refused or looked.line is None:
        return looked
    if not looked.pairs or refused >= looked.pairs:
        return replace(looked, line=None, also=())
    line = replace(looked.line, settings=(*looked.line.settings, "seeds.folder.on_bad_seed=skip"))
    return replace(looked, line=line)


def _together(root: Path, looked: Sequence[Looked]) -> SuiteLine | None:
    settings, taken = together(root, [one.found for one in looked])
    if not taken:
        return None
    places = {one.images for one in taken}
    if any(one.problems for one in looked if one.found.images in places):
        settings = (*settings, "seeds.folder.on_bad_seed=skip")
    return SuiteLine(suite="polyp_seg_folder", settings=settings, sets=tuple(one.name for one in taken))


def _look_maps(root: Path, tree: Tree, found: Found, others: Sequence[Found]) -> Looked | None:
    """Return what is to know of a folder of prediction maps; None where it is none."""
    if not (found.holds == "images" or (found.holds == "labels" and found.reader == "class_folders")):
        return None
    pictures = [found.images / path for path in tree.files(found.images)]
    if not look_like_maps(root, pictures):
        return None
    maps = replace(found, holds="maps", layout="maps of probability, or masks without images", count=len(pictures))
    own = set_of_maps(tree, found, others)
    if own is None:
        note = f"run on the images that they are of with model=predictions folder={shown(found.images)}"
        return Looked(found=maps, pairs=len(pictures), notes=(note,))
    line = SuiteLine(suite="polyp_seg_folder", data=own.where, maps=found.images, settings=("only=relation:unchanged",))
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
                notes.append(f"{shown(name)} is no archive that can be read, or is damaged")
                continue
            inside[str(name)] = tuple(Looked(found=one, notes=count_notes(one)) for one in packed)
    return inside, notes


# --------------------------------------------------------------------------------------------------------- one set


def _look_tables(root: Path, found: Found, progress: Callable[[int], None]) -> Looked:
    """Look at a data set whose files say what its images hold: labels or questions."""
    labels = found.holds == "labels"
    try:
        looked = (look_at_labels if labels else look_at_questions)(root, found, progress)
    except (LayoutError, UserMistakes) as error:
        reason = f"{error.found}; {error.fix}" if isinstance(error, LayoutError) else _first_mistake(error)
        meant = found.reader != "table" if labels else found.dataset or is_taken_for_questions(root, found)
        if not meant:  # called like such a file and something else: nobody asked for it
            return Looked(found=found, notes=(f"not taken for {found.holds}: {reason}",))
        where = shown(found.tables[0] if found.tables else found.where)
        return Looked(found=found, pairs=0, problems=(SeedProblem(file=where, reason=reason),))
    found = replace(found, count=looked.pairs or 0)
    unconfirmed = (f"not confirmed: {found.facts.unconfirmed}",) if found.facts and found.facts.unconfirmed else ()
    return replace(looked, found=found, notes=(*count_notes(found), *looked.notes, *unconfirmed))


def _first_mistake(error: UserMistakes) -> str:
    mistake = error.mistakes[0]
    return f"{mistake.found}" + (f"; {mistake.fix}" if mistake.fix else "")


def _look(root: Path, found: Found, progress: Callable[[int], None]) -> Looked:
    if found.holds in ("labels", "questions"):
        return _look_tables(root, found, progress)
    line = _line(found)
    dataset = DataSet(
        name=found.dataset or "set",
        images=found.images,
        masks=found.masks,
        image_names=found.image_names,
        mask_names=found.mask_names,
    )
    try:
        pairing = pair_images(root, dataset) if found.holds == "images" else pair_with_masks(root, dataset)
    except LayoutError as error:
        problem = SeedProblem(file=shown(found.where), reason=f"{error.found}; {error.fix}")
        return Looked(found=found, pairs=0, notes=count_notes(found), problems=(problem,), line=None)
    own = look_at(root, pairing.pairs, Rules(reading=FrameReading(), negatives=False), progress)
    frames = sum(own.sizes.values())
    return Looked(
        found=found,
        pairs=len(pairing.pairs),
        sizes=tuple(own.sizes.most_common()),
        rule=pairing.rule if pairing.rule != "<name>" else "",
        notes=(
            *count_notes(found),
            *size_notes(found, own.sizes),
            *frame_notes(frames, len(pairing.pairs)),
            *(notice.rstrip(".") for notice in own.notices),
        ),
        problems=(*pairing.all_problems(), *own.problems),
        line=line,
        also=_also(found),
    )


def _line(found: Found) -> SuiteLine | None:
    if found.holds == "images":
        return SuiteLine(suite="polyp_seg_unlabelled", data=found.where)
    if found.holds != "masks":
        return None
    if found.image_names and found.image_names == found.mask_names:  # one of several sets in one folder
        settings = ("seeds.folder.layout=known", f"seeds.folder.sets=[{found.dataset}]")
        return SuiteLine(suite="polyp_seg_folder", data=found.where, settings=settings, sets=(found.dataset,))
    return SuiteLine(suite="polyp_seg_folder", data=found.where)


def _also(found: Found) -> tuple[tuple[str, SuiteLine], ...]:
    """Return how to ask the 18 questions of images alone."""
    if found.holds != "images":
        return ()
    line = SuiteLine(suite="medvqa_clef", data=found.images, settings=(MODEL,))
    return (("to ask a model the 18 questions of MEDVQA-GI, endoscopy images only", line),)


# ---------------------------------------------------------------------------------------------------------- suites


def _suites_for(looked: Sequence[Looked]) -> tuple[tuple[SuiteLine, Mapping[str, int]], ...]:
    """Return the suites that need several known sets, where at least one is there, with how much there is of each."""
    found: list[tuple[SuiteLine, Mapping[str, int]]] = []
    for suite, needed in suites().items():
        taken = chosen([one.found for one in looked], needed)
        counts = {name: sum(f.count for f in parts) for name, parts in taken.items()}
        if any(counts.get(name) for name in needed):
            line = SuiteLine(suite=suite, sets=tuple(name for name in needed if counts.get(name)))
            found.append((line, {name: counts.get(name, 0) for name in needed}))
    return tuple(found)
