"""Creation of a study's folder: follow-ups, training, repeated and catch items, and the annotators' lists."""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from medtest.core import __version__
from medtest.core.errors import Mistake, OutputProblem, typed_error
from medtest.realism.folders import RealPicture
from medtest.realism.options import RealPlaces
from medtest.runner.followups.make import check_privacy
from medtest.study.database import now
from medtest.study.extras import Extras, catch_items, training_items
from medtest.study.model import Item
from medtest.study.options import StudyOptions
from medtest.study.plan import arrange, assign, generator, preferred, share
from medtest.study.questions import ARTEFACTS, MADE, REAL, StudyKind, expected_choice
from medtest.study.store import StudyStore
from medtest.study.workshop import Workshop
from medtest.suite.model import Invocation, Suite

Progress = Callable[[int, int], None]
FRAMES = "frames"
"""Name of the group of source frames in a study of artefacts."""


@dataclass(frozen=True, kw_only=True)
class MadeStudy:
    """A created study.

    Attributes:
        folder: Folder of the study.
        kind: Kind of the study.
        items: Number of items to judge by relation, without catch and training items.
        catches: Number of catch items.
        training: Number of training items.
        annotators: Number of annotators.
        longest: Length of the longest list, including repeated and catch items.
        notices: Notices for the study's owner.
    """

    folder: Path
    kind: StudyKind
    items: Mapping[str, int]
    catches: int
    training: int
    annotators: int
    longest: int
    notices: tuple[str, ...] = ()


@dataclass(kw_only=True)
class _Draft:
    items: dict[str, list[Item]] = field(default_factory=dict)
    catches: list[Item] = field(default_factory=list)
    training: list[Item] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    progress: Progress | None = None
    total: int = 0

    def add(self, name: str, item: Item) -> None:
        """Add an item to judge, and report progress."""
        self.items[name].append(item)
        if self.progress is not None:
            self.progress(sum(map(len, self.items.values())), self.total)


def make_study(
    suite: Suite,
    invocation: Invocation,
    options: StudyOptions,
    to: Path,
    progress: Progress | None = None,
    *,
    real: RealPlaces | None = None,
) -> MadeStudy:
    """Write a study into a new folder; an interrupted call leaves no folder of that name.

    Args:
        suite: Suite with the seeds and relations; its systems are not used.
        invocation: Only ``data``, ``limit`` and ``only`` are used.
        options: Numbers of items and annotators.
        to: Target folder, which must not exist or be empty.
        progress: Called with the numbers of drawn and requested items.
        real: Folders of real artefacts for a blind study; None shows untouched frames of the suite as real ones.

    Raises:
        UserMistakes: The suite forbids showing images, there is nothing to draw, or the folder is not empty.
        OutputProblem: The folder cannot be written.
    """
    check_privacy(
        suite,
        series="A study shows pictures with lesions, and this suite has series.",
        forbidden="A study shows images to people; this suite forbids that.",
    )
    with new_folder(to) as folder:
        seed = suite.seed if options.draw is None else options.draw
        with closing(Workshop(suite, invocation, folder)) as workshop:
            draft = _draw(workshop, options, seed, progress, real)
        if not any(draft.items.values()):
            raise Mistake(where="suite", found="nothing to show", allowed="follow-ups that can be made").as_error()
        meta = {
            "kind": options.kind.value,
            "suite": suite.name,
            "suite_version": suite.version,
            "created": now(),
            "medtest": __version__,
            "seed": seed,
            "hashed": suite.privacy.seed_ids == "hashed",
            "phantom": any(plan.info.load().phantom for plan in suite.seeds),
            "options": options.model_dump(mode="json"),
            "relations": dict.fromkeys(draft.items, ""),
        }
        longest = write_study(folder, meta, draft.items, draft.catches, draft.training, options, seed)
    return MadeStudy(
        folder=to,
        kind=options.kind,
        items={name: len(items) for name, items in draft.items.items() if items},
        catches=len(draft.catches),
        training=len(draft.training),
        annotators=options.annotators,
        longest=longest,
        notices=tuple(draft.notices),
    )


def write_study(
    folder: Path,
    meta: Mapping[str, object],
    groups: Mapping[str, Sequence[Item]],
    catches: Sequence[Item],
    training: Sequence[Item],
    options: StudyOptions,
    seed: int,
) -> int:
    """Write the database of items and lists; return the length of the longest list."""
    items = [item for members in groups.values() for item in members]
    sources = {item.id: item.source for item in (*items, *catches)}
    own = assign(
        {name: [item.id for item in members] for name, members in groups.items()},
        annotators=options.annotators,
        raters=options.seen_by,
        rng=generator(seed, "assign"),
    )
    longest = 0
    with StudyStore.create(folder, meta, options.annotators) as store:
        store.add_items([*items, *catches, *training])
        for number, of_annotator in enumerate(own, start=1):
            count = sum(len(members) for members in of_annotator.values())
            slots = arrange(
                of_annotator,
                catches=[item.id for item in catches],
                repeats=share(count, options.repeat, least=1),
                sources=sources,
                rng=generator(seed, "order", number),
            )
            longest = max(longest, len(slots))
            store.add_places(number, "main", slots)
            store.add_places(number, "training", [(item.id, 1) for item in training])
    return longest


# --- drawing --------------------------------------------------------------------------------------------------------


def _draw(
    workshop: Workshop, options: StudyOptions, seed: int, progress: Progress | None, real: RealPlaces | None
) -> _Draft:
    draft = _Draft(progress=progress)
    numbers = iter(range(1, 10_000_000))
    extras = Extras(workshop=workshop, kind=options.kind, seed=seed, numbers=numbers)
    if options.training:
        draft.training = training_items(extras, options.training)
    draft.items = {name: [] for name in workshop.addresses} if options.drawn else {}
    draft.total = len(draft.items) * options.drawn
    if options.kind.names_artefacts:
        draft.total += options.frames
        draft.items = {FRAMES: [], **draft.items}
        _draw_frames(workshop, options.frames, seed, draft, numbers)
    _draw_followups(workshop, options, seed, draft, numbers)
    if options.kind.is_blind:
        _draw_real(workshop, options.real, seed, draft, numbers, real)
    count = sum(map(len, draft.items.values())) * options.seen_by // options.annotators
    draft.catches = catch_items(extras, share(count, options.catch, least=2), draft.notices)
    if options.training and not draft.training:
        draft.notices.append("There is no training round: nothing with a known answer could be made of these seeds.")
    return draft


def _draw_frames(
    workshop: Workshop,
    count: int,
    seed: int,
    draft: _Draft,
    numbers: Iterator[int],
    expected: Mapping[str, object] | None = None,
) -> None:
    """Draw source frames, those of seeds without a drawn follow-up first."""
    used = {item.source for items in draft.items.values() for item in items}
    order = [*preferred(workshop.sources, generator(seed, "draw", FRAMES))]
    order.sort(key=lambda address: workshop.source_name(address) in used)
    for address in order[:count]:
        shown = workshop.picture(address)
        if shown is not None:
            draft.add(FRAMES, workshop.item(next(numbers), address, shown, expected=expected))
    available = len(draft.items[FRAMES])
    if available < count:
        draft.notices.append(f"{available} of {count} frames: the suite has no more.")


def _draw_real(
    workshop: Workshop, each: int, seed: int, draft: _Draft, numbers: Iterator[int], real: RealPlaces | None
) -> None:
    """Draw real frames of each relation: pictures of the user's folder, then untouched frames of the suite."""
    folders, notices = ([], []) if real is None else workshop.real_folders(real)
    draft.notices += notices
    of_relation = {folder.relation: folder for folder in folders}
    plain, without = 0, []
    for name in list(draft.items):
        drawn = 0
        if name in of_relation:
            for picture in _turns(of_relation[name].pictures, generator(seed, "draw", "real", name)):
                if drawn == each:
                    break
                item = workshop.real_item(next(numbers), of_relation[name], picture, draft.notices)
                if item is not None:
                    draft.add(name, item)
                    drawn += 1
        if drawn < each:
            plain += each - drawn
            without.append(name)
    if plain:
        draft.notices.append(
            f"{plain} real frames show no artefact: untouched frames of the suite stand for real pictures of "
            f"{', '.join(without)} (real=FOLDER has none, or too few)."
        )
        draft.items[FRAMES] = []
        _draw_frames(workshop, plain, seed, draft, numbers, expected_choice(REAL))


def _turns(pictures: Sequence[RealPicture], rng: np.random.Generator) -> list[RealPicture]:
    """Return pictures in random order, videos taking turns."""
    shuffled = [pictures[int(place)] for place in rng.permutation(len(pictures))]
    seen: Counter[str] = Counter()
    ranked = []
    for picture in shuffled:
        ranked.append((seen[picture.group], picture))
        seen[picture.group] += 1
    return [picture for _, picture in sorted(ranked, key=lambda pair: pair[0])]


def _draw_followups(
    workshop: Workshop, options: StudyOptions, seed: int, draft: _Draft, numbers: Iterator[int]
) -> None:
    """Draw in waves: an address whose relation does not apply is replaced by the relation's next candidate."""
    is_any = not options.kind.names_artefacts
    names = [name for name in workshop.addresses if is_any or workshop.parts[name] in ARTEFACTS]
    count = options.drawn - options.real
    expected = expected_choice(MADE) if options.kind.is_blind else None
    orders = {name: preferred(workshop.addresses[name], generator(seed, "draw", name)) for name in names}
    while True:
        wave = [
            (name, address)
            for name in names
            for address in islice(orders[name], count - len(draft.items.get(name, ())))
        ]
        if not wave:
            break
        # prepares each seed once per wave
        for name, address in sorted(wave, key=lambda pair: (pair[1].dataset, pair[1].seed_id)):
            shown = workshop.picture(address)
            if shown is not None:
                draft.add(name, workshop.item(next(numbers), address, shown, expected=expected))
    for name in names:
        available = len(draft.items.get(name, ()))
        if available < count:
            draft.notices.append(f"{name}: {available} of {count} follow-ups; the suite has no more.")


# --- the folder -----------------------------------------------------------------------------------------------------


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """Yield a temporary folder that gets its final name when the block ends without an error.

    Args:
        to: Path of the folder.

    Raises:
        UserMistakes: The path exists.
        OutputProblem: It cannot be created.
    """
    if to.exists() and not (to.is_dir() and not any(to.iterdir())):
        raise typed_error("to", f"{to.name}, which exists", "a new folder")
    partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}.part")
    try:
        with _creation(to):
            to.parent.mkdir(parents=True, exist_ok=True)
            partial.mkdir(mode=0o700)
        yield partial
        with _creation(to):
            if to.exists():
                to.rmdir()
            partial.rename(to)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _creation(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputProblem(f"{to.name} cannot be created: {error.strerror}") from error
